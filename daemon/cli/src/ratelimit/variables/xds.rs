//! The server of xDS that limits come from.

use super::super::value::Kind;
use super::{Group, honoured, ignored};

pub(super) const GROUP: Group = Group {
    title: "Limits from a server of xDS",
    variables: &[
        honoured(
            "CONFIG_GRPC_XDS_SERVER_URL",
            Kind::Text,
            "localhost:18000",
            "The server, `HOST:PORT`.",
        ),
        honoured("CONFIG_GRPC_XDS_NODE_ID", Kind::Text, "default", "What it is called there."),
        honoured(
            "CONFIG_GRPC_XDS_NODE_METADATA",
            Kind::Text,
            "",
            "What it tells of itself there, as `NAME=VALUE,NAME=VALUE`.",
        ),
        honoured(
            "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
            Kind::Pairs,
            "",
            "Headers of its requests there.",
        )
        .secret(),
        honoured(
            "CONFIG_GRPC_XDS_SERVER_USE_TLS",
            Kind::Truth,
            "false",
            "Whether TLS is spoken to the server.",
        ),
        honoured(
            "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
            Kind::Text,
            "",
            "The certificates that the server's must lead to, as PEM: these alone; without it the \
             system's.",
        ),
        honoured(
            "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
            Kind::Text,
            "",
            "The name that the server's certificate must have, in place of its host's.",
        ),
        honoured(
            "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
            Kind::Text,
            "",
            "The certificate to show there.",
        ),
        honoured("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", Kind::Text, "", "Its private key."),
        ignored(
            "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
            Kind::Duration,
            "3s",
            "connections are tried again after the times of XDS_CLIENT_BACKOFF_INITIAL_INTERVAL \
             and XDS_CLIENT_BACKOFF_MAX_INTERVAL",
        ),
        honoured(
            "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
            Kind::Duration,
            "10s",
            "How long it waits before it asks again after a failure, at first; where it is not \
             set, 1 s.",
        ),
        honoured(
            "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
            Kind::Duration,
            "60s",
            "How long it waits at most; where it is not set, 30 s.",
        ),
        ignored(
            "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
            Kind::Decimal,
            "0.5",
            "waiting times are always spread",
        ),
        ignored(
            "XDS_CLIENT_BACKOFF_JITTER",
            Kind::Truth,
            "true",
            "waiting times are always spread",
        ),
        honoured(
            "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
            Kind::Whole,
            "",
            "The most bytes of a message from the server.",
        ),
    ],
};
