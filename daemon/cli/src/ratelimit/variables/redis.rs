//! The server that keeps the counters.

use super::super::value::Kind;
use super::{Group, honoured, ignored};

pub(super) const GROUP: Group = Group {
    title: "Redis",
    variables: &[
        honoured(
            "REDIS_SOCKET_TYPE",
            Kind::Text,
            "unix",
            "`tcp` or `unix`; where it is not set, a REDIS_URL that is no path is of `tcp`.",
        ),
        honoured("REDIS_TYPE", Kind::Text, "SINGLE", "`SINGLE`, `SENTINEL` or `CLUSTER`."),
        honoured(
            "REDIS_URL",
            Kind::Text,
            "/var/run/nutcracker/ratelimit.sock",
            "`HOST:PORT` or a path, `MASTER,HOST:PORT,…`, or `HOST:PORT,…`, by REDIS_TYPE. There \
             is no default here.",
        )
        .secret(),
        honoured("REDIS_AUTH", Kind::Text, "", "`PASSWORD` or `USER:PASSWORD`.").secret(),
        honoured("REDIS_SENTINEL_AUTH", Kind::Text, "", "The same, of the sentinels.").secret(),
        honoured("REDIS_TLS", Kind::Truth, "false", "Whether TLS is spoken."),
        honoured(
            "REDIS_TLS_CACERT",
            Kind::Text,
            "",
            "The certificates to trust, as PEM: these alone; without it the system's.",
        ),
        honoured("REDIS_TLS_CLIENT_CERT", Kind::Text, "", "The certificate to show, as PEM."),
        honoured("REDIS_TLS_CLIENT_KEY", Kind::Text, "", "Its private key, as PEM."),
        ignored(
            "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
            Kind::Truth,
            "false",
            "the server's name is always held against its certificate; name it in REDIS_URL as the \
             certificate does",
        ),
        honoured(
            "REDIS_TIMEOUT",
            Kind::Duration,
            "10s",
            "How long a decision may take, and a connection to be made. Where it is not set, 15 ms \
             and 1 s: Envoy waits 20 ms.",
        ),
        honoured(
            "REDIS_POOL_SIZE",
            Kind::Whole,
            "10",
            "How many connections there are to each server, at most 64; where it is not set 2, \
             since each carries many requests at a time.",
        ),
        honoured(
            "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
            Kind::Truth,
            "false",
            "Whether it is unhealthy while Redis is away. It is so in any case until Redis was \
             there once.",
        ),
        ignored(
            "REDIS_PIPELINE_WINDOW",
            Kind::Duration,
            "0",
            "requests that come together are always sent together, and none waits for others",
        ),
        ignored(
            "REDIS_PIPELINE_LIMIT",
            Kind::Whole,
            "0",
            "it does nothing in envoyproxy/ratelimit either",
        ),
        ignored(
            "REDIS_CLUSTER_PIPELINE_PARALLELISM",
            Kind::Whole,
            "1",
            "the nodes of a cluster are always asked side by side",
        ),
        ignored(
            "REDIS_POOL_ON_EMPTY_BEHAVIOR",
            Kind::Text,
            "WAIT",
            "there is no pool to run empty; a decision is made by its deadline, REDIS_TIMEOUT",
        ),
        ignored(
            "REDIS_STARTUP_INITIAL_INTERVAL",
            Kind::Duration,
            "1s",
            "it starts without Redis, is not healthy, and connects as soon as it can",
        ),
        ignored(
            "REDIS_STARTUP_MAX_INTERVAL",
            Kind::Duration,
            "30s",
            "it starts without Redis, is not healthy, and connects as soon as it can",
        ),
        ignored(
            "REDIS_STARTUP_MAX_ELAPSED_TIME",
            Kind::Duration,
            "0",
            "it waits for Redis as long as it takes; a probe of `/healthcheck` can end that",
        ),
        ignored(
            "REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR",
            Kind::Truth,
            "false",
            "a server that has become read-only is always left for the one that took over",
        ),
        ignored(
            "REDIS_PERSECOND",
            Kind::Truth,
            "false",
            "one store serves all limits: the server of REDIS_URL",
        ),
    ],
};

const PER_SECOND_WHY: &str = "one store serves all limits: the server of REDIS_URL";

pub(super) const PER_SECOND: Group = Group {
    title: "A second Redis for limits of a second",
    variables: &[
        ignored("REDIS_PERSECOND_SOCKET_TYPE", Kind::Text, "unix", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_TYPE", Kind::Text, "SINGLE", PER_SECOND_WHY),
        ignored(
            "REDIS_PERSECOND_URL",
            Kind::Text,
            "/var/run/nutcracker/ratelimitpersecond.sock",
            PER_SECOND_WHY,
        )
        .secret(),
        ignored("REDIS_PERSECOND_POOL_SIZE", Kind::Whole, "10", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_AUTH", Kind::Text, "", PER_SECOND_WHY).secret(),
        ignored("REDIS_PERSECOND_SENTINEL_AUTH", Kind::Text, "", PER_SECOND_WHY).secret(),
        ignored("REDIS_PERSECOND_TLS", Kind::Truth, "false", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_TIMEOUT", Kind::Duration, "10s", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_PIPELINE_WINDOW", Kind::Duration, "0", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_PIPELINE_LIMIT", Kind::Whole, "0", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", Kind::Whole, "1", PER_SECOND_WHY),
        ignored("REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", Kind::Text, "WAIT", PER_SECOND_WHY),
    ],
};
