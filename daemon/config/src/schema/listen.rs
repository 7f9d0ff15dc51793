//! `listen`: the listeners.

use super::store::FILE;
use super::{Field, Kind, Scalar, Section};

pub(super) static LISTEN: Section = Section {
    fields: &[
        Field::new(
            "http",
            Kind::Scalar(Scalar::Address),
            "127.0.0.1:8080",
            "The listener for `/v1`, forward auth, `/livez` and `/readyz`.",
        )
        .needs_restart(),
        Field::new(
            "grpc",
            Kind::Scalar(Scalar::Address),
            "127.0.0.1:8081",
            "The listener for Envoy's rate limit service over gRPC.",
        )
        .needs_restart(),
        Field::new(
            "resp",
            Kind::Scalar(Scalar::Address),
            "127.0.0.1:6380",
            "The listener for Redis clients.",
        )
        .needs_restart(),
        Field::new(
            "metrics",
            Kind::Scalar(Scalar::Address),
            "127.0.0.1:9091",
            "The listener for `/metrics`.",
        )
        .needs_restart(),
        Field::section("tls", &TLS, "TLS for all listeners, if `cert` is set."),
    ],
    later: &["admin"],
};

static TLS: Section = Section {
    fields: &[
        Field::new(
            "cert",
            FILE,
            "null",
            "The server certificate and its intermediate certificates, as PEM; requires `key`. The \
             file is reloaded when it changes.",
        )
        .needs_restart(),
        Field::new("key", FILE, "null", "The private key of `cert`, as PEM.").needs_restart(),
        Field::new(
            "client_ca",
            FILE,
            "null",
            "The CA bundle that verifies client certificates, as PEM. By default clients need no \
             certificate.",
        )
        .needs_restart(),
    ],
    later: &[],
};
