//! `listen`: where the daemon listens.

use super::store::FILE;
use super::{Field, Kind, Scalar, Section};

pub(super) static LISTEN: Section = Section {
    fields: &[
        Field::new(
            "http",
            Kind::One(Scalar::Address),
            "127.0.0.1:8080",
            "For `/v1`, forward-auth, `/livez` and `/readyz`: `HOST:PORT`, `unix:PATH` or `off`.",
        )
        .needs_restart(),
        Field::new(
            "grpc",
            Kind::One(Scalar::Address),
            "127.0.0.1:8081",
            "For Envoy's rate limit service over gRPC: `HOST:PORT`, `unix:PATH` or `off`.",
        )
        .needs_restart(),
        Field::new(
            "resp",
            Kind::One(Scalar::Address),
            "127.0.0.1:6380",
            "For clients of Redis: `HOST:PORT`, `unix:PATH` or `off`.",
        )
        .needs_restart(),
        Field::new(
            "metrics",
            Kind::One(Scalar::Address),
            "127.0.0.1:9091",
            "For `/metrics`: `HOST:PORT`, `unix:PATH` or `off`.",
        )
        .needs_restart(),
        Field::section("tls", &TLS, "TLS on all of them, if `cert` is there."),
    ],
    later: &["admin"],
};

static TLS: Section = Section {
    fields: &[
        Field::new(
            "cert",
            FILE,
            "null",
            "The certificate to show and those that lead to it, as PEM; `key` goes with it. What \
             is in the file is read again when it changes.",
        )
        .needs_restart(),
        Field::new("key", FILE, "null", "The private key of `cert`, as PEM.").needs_restart(),
        Field::new(
            "client_ca",
            FILE,
            "null",
            "The certificates that a client's must lead to, as PEM; with null no client is asked \
             for one.",
        )
        .needs_restart(),
    ],
    later: &[],
};
