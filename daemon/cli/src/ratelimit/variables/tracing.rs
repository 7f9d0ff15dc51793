//! Spans of OpenTelemetry.

use super::super::value::Kind;
use super::{Group, honoured};

pub(super) const GROUP: Group = Group {
    title: "Tracing",
    variables: &[
        honoured(
            "TRACING_ENABLED",
            Kind::Truth,
            "false",
            "Whether each decision is sent as a span, to the collector of \
             `OTEL_EXPORTER_OTLP_ENDPOINT`. It takes a build with the feature `otlp`.",
        ),
        honoured(
            "TRACING_EXPORTER_PROTOCOL",
            Kind::Text,
            "http",
            "`http`; `grpc` is refused, for a collector has a port for HTTP too.",
        ),
        honoured("TRACING_SERVICE_NAME", Kind::Text, "RateLimit", "What the service is called."),
        honoured("TRACING_SERVICE_NAMESPACE", Kind::Text, "", "Its namespace."),
        honoured("TRACING_SERVICE_INSTANCE_ID", Kind::Text, "", "Which one of it this is."),
        honoured(
            "TRACING_SAMPLING_RATE",
            Kind::Decimal,
            "1",
            "Which share of the traces is sent, where nobody before has decided.",
        ),
    ],
};
