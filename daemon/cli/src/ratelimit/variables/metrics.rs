//! What is counted, and who is told.

use super::super::value::Kind;
use super::{Group, honoured, ignored};

const NO_STATSD: &str =
    "nothing is sent to a StatsD; read `/metrics`, which is at the debug port too";

pub(super) const GROUP: Group = Group {
    title: "Metrics",
    variables: &[
        honoured(
            "USE_PROMETHEUS",
            Kind::Truth,
            "false",
            "Whether there is a listener for metrics. They are at `/metrics` of the debug port \
             either way.",
        ),
        honoured("PROMETHEUS_ADDR", Kind::Text, ":9090", "Where that listener is."),
        honoured("PROMETHEUS_PATH", Kind::Text, "/metrics", "Where on it the metrics are."),
        ignored(
            "PROMETHEUS_MAPPER_YAML",
            Kind::Text,
            "",
            "nothing is mapped: the metrics have the names of envoyproxy/ratelimit's own mapping",
        ),
        ignored(
            "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS",
            Kind::Truth,
            "false",
            "ratelimit_service_response_time_seconds is in seconds, as it is called; multiply by \
             1000 where it is read",
        ),
        ignored("USE_STATSD", Kind::Truth, "true", NO_STATSD).holds("false"),
        ignored("STATSD_HOST", Kind::Text, "localhost", NO_STATSD),
        ignored("STATSD_PORT", Kind::Whole, "8125", NO_STATSD),
        ignored("USE_DOG_STATSD", Kind::Truth, "false", NO_STATSD),
        ignored("USE_DOG_STATSD_MOGRIFIERS", Kind::List, "", NO_STATSD),
        ignored(
            "EXTRA_TAGS",
            Kind::Pairs,
            "",
            "metrics have no labels beside their own; add them where they are read, by \
             `static_configs.labels` or `relabel_configs`",
        ),
        ignored(
            "STATS_FLUSH_INTERVAL",
            Kind::Duration,
            "10s",
            "nothing is flushed: `/metrics` is what holds at that moment",
        ),
        ignored("DISABLE_STATS", Kind::Truth, "false", "counting costs no I/O; do not read it"),
    ],
};
