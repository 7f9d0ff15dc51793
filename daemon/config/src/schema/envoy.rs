//! `envoy`: how Envoy's rate limit service is answered.

use super::{Field, Kind, Scalar, Section};

pub(super) static ENVOY: Section = Section {
    fields: &[
        Field::new(
            "config",
            Kind::OneOrMany(Scalar::Path { what: "the path of a file or a directory" }),
            "[]",
            "Files of envoyproxy/ratelimit, or directories of them, read unchanged. Domains that \
             none of them has are names of policies.",
        ),
        Field::new(
            "merge_domains",
            Kind::One(Scalar::Truth),
            "false",
            "Whether several files may be of one domain; otherwise the second is refused.",
        ),
        Field::new(
            "charging",
            Kind::One(Scalar::words(&["atomic", "reference"])),
            "atomic",
            "`atomic` charges all descriptors of a request or none, and denied requests nothing; \
             `reference` charges each by itself, denied ones too, as envoyproxy/ratelimit does.",
        ),
        Field::new(
            "on_store_error",
            Kind::One(Scalar::words(&["deny", "allow", "error"])),
            "deny",
            "What holds for descriptors that a file or a control plane limits while the store gives \
             no answer: they are over, they pass, or the call is an error, so that Envoy's \
             `failure_mode_deny` decides. Policies have their own.",
        ),
        Field::new(
            "response_headers",
            Kind::One(Scalar::Truth),
            "false",
            "Whether Envoy is told the headers of `headers` for its client's response.",
        ),
        Field::new(
            "dynamic_metadata",
            Kind::One(Scalar::Truth),
            "false",
            "Whether Envoy is told domain, descriptors and a rule's `metadata` as dynamic metadata.",
        ),
        Field::new(
            "shadow",
            Kind::One(Scalar::Truth),
            "false",
            "Whether every request passes, whatever its descriptors say.",
        ),
        Field::new(
            "reference_metrics",
            Kind::One(Scalar::Truth),
            "false",
            "Whether the page of metrics also has the names of envoyproxy/ratelimit.",
        ),
        Field::section("xds", &XDS, "A control plane that the configuration is taken from."),
    ],
    later: &[],
};

static XDS: Section = Section {
    fields: &[
        Field::new(
            "server",
            Kind::One(Scalar::Text),
            "null",
            "`HOST:PORT` of a server of `ratelimit.config.ratelimit.v3` by aggregated discovery; \
             `config` is then not read.",
        )
        .needs_restart(),
        Field::new(
            "node_id",
            Kind::One(Scalar::Text),
            "default",
            "What this daemon is called there.",
        )
        .needs_restart(),
        Field::new(
            "ca",
            super::store::FILE,
            "null",
            "The certificates that the server's must lead to, as PEM; with it, TLS is spoken.",
        )
        .needs_restart(),
        Field::new("cert", super::store::FILE, "null", "The certificate to show there, as PEM.")
            .needs_restart(),
        Field::new("key", super::store::FILE, "null", "The private key of `cert`, as PEM.")
            .needs_restart(),
    ],
    later: &[],
};
