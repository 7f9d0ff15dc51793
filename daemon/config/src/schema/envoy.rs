//! `envoy`: Envoy's rate limit service.

use super::{Field, Kind, Scalar, Section};

pub(super) static ENVOY: Section = Section {
    fields: &[
        Field::new(
            "config",
            Kind::ScalarOrList(Scalar::Path { what: "the path of a file or a directory" }),
            "[]",
            "Configuration files of envoyproxy/ratelimit, or directories of such files, read \
             unchanged. A domain that no file defines is the name of a policy.",
        ),
        Field::new(
            "merge_domains",
            Kind::Scalar(Scalar::Bool),
            "false",
            "Whether several files may define the same domain. Otherwise the second one is \
             rejected.",
        ),
        Field::new(
            "charging",
            Kind::Scalar(Scalar::keywords(&["atomic", "reference"])),
            "atomic",
            "`atomic` charges all descriptors of a request or none, and denied requests nothing; \
             `reference` charges each by itself, denied ones too, as envoyproxy/ratelimit does.",
        ),
        Field::new(
            "on_store_error",
            Kind::Scalar(Scalar::keywords(&["deny", "allow", "error"])),
            "deny",
            "The response for descriptors with a limit from a file or a control plane while the \
             store is unavailable: over the limit, within the limit, or an error, so that Envoy's \
             `failure_mode_deny` decides. Policies have their own `on_store_error`.",
        ),
        Field::new(
            "response_headers",
            Kind::Scalar(Scalar::Bool),
            "false",
            "Whether responses to Envoy contain the headers configured in `headers`, for the \
             client's response.",
        ),
        Field::new(
            "dynamic_metadata",
            Kind::Scalar(Scalar::Bool),
            "false",
            "Whether responses to Envoy contain the domain, the descriptors and the rule's \
             `metadata` as dynamic metadata.",
        ),
        Field::new(
            "shadow",
            Kind::Scalar(Scalar::Bool),
            "false",
            "Whether every request is admitted, regardless of its limits.",
        ),
        Field::new(
            "reference_metrics",
            Kind::Scalar(Scalar::Bool),
            "false",
            "Whether the metrics page also contains metrics under the names of \
             envoyproxy/ratelimit.",
        ),
        Field::section(
            "xds",
            &XDS,
            "A control plane that provides the configuration, instead of \
                                     files.",
        ),
    ],
    later: &[],
};

static XDS: Section = Section {
    fields: &[
        Field::new(
            "server",
            Kind::Scalar(Scalar::Text),
            "null",
            "`HOST:PORT` of a server that provides `ratelimit.config.ratelimit.v3` through \
             aggregated discovery. `config` is then ignored.",
        )
        .needs_restart(),
        Field::new(
            "node_id",
            Kind::Scalar(Scalar::Text),
            "default",
            "The node ID that the daemon sends.",
        )
        .needs_restart(),
        Field::new(
            "ca",
            super::store::FILE,
            "null",
            "The CA bundle that verifies the server, as PEM. Enables TLS.",
        )
        .needs_restart(),
        Field::new("cert", super::store::FILE, "null", "The client certificate, as PEM.")
            .needs_restart(),
        Field::new("key", super::store::FILE, "null", "The private key of `cert`, as PEM.")
            .needs_restart(),
    ],
    later: &[],
};
