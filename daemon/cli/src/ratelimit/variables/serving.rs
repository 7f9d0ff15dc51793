//! Where it listens, and what it logs.

use super::super::value::Kind;
use super::{Group, honoured, ignored};

pub(super) const GROUP: Group = Group {
    title: "Listening and logging",
    variables: &[
        honoured("HOST", Kind::Text, "0.0.0.0", "Where `/json` and `/healthcheck` are."),
        honoured("PORT", Kind::Whole, "8080", "Their port."),
        honoured("GRPC_HOST", Kind::Text, "0.0.0.0", "Where the rate limit service is."),
        honoured("GRPC_PORT", Kind::Whole, "8081", "Its port."),
        honoured("GRPC_UDS", Kind::Text, "", "The socket of the file system where it is instead."),
        honoured("DEBUG_HOST", Kind::Text, "0.0.0.0", "Where the debug pages are."),
        honoured("DEBUG_PORT", Kind::Whole, "6070", "Their port."),
        honoured(
            "GRPC_MAX_CONNECTION_AGE",
            Kind::Duration,
            "24h",
            "How long a connection of gRPC lives before its peer is asked to make another; each \
             lives up to a tenth less.",
        ),
        ignored(
            "GRPC_MAX_CONNECTION_AGE_GRACE",
            Kind::Duration,
            "1h",
            "requests under way on a connection that has reached its age are always answered, and \
             it then ends",
        ),
        honoured(
            "GRPC_SERVER_USE_TLS",
            Kind::Truth,
            "false",
            "TLS for gRPC, and nowhere else. The files are read again when they change.",
        ),
        honoured("GRPC_SERVER_TLS_CERT", Kind::Text, "", "The certificate to show, as PEM."),
        honoured("GRPC_SERVER_TLS_KEY", Kind::Text, "", "Its private key, as PEM."),
        honoured(
            "GRPC_CLIENT_TLS_CACERT",
            Kind::Text,
            "",
            "The certificates that a client's must lead to, as PEM: these alone, not those of the \
             system too.",
        ),
        honoured(
            "GRPC_CLIENT_TLS_SAN",
            Kind::Text,
            "",
            "The name that a client's certificate must have, among its alternative names.",
        ),
        ignored(
            "GRPC_SERVER_TLS_CA_CERT",
            Kind::Text,
            "",
            "Envoy Gateway sets it, and envoyproxy/ratelimit does not read it either; \
             GRPC_CLIENT_TLS_CACERT has clients show a certificate",
        ),
        honoured(
            "LOG_LEVEL",
            Kind::Text,
            "WARN",
            "`trace`, `debug`, `info`, `warn` or `error`; `panic` and `fatal` are `error`.",
        ),
        honoured(
            "LOG_FORMAT",
            Kind::Text,
            "text",
            "`text` or `json`. The fields of a line are Tollgate's.",
        ),
    ],
};
