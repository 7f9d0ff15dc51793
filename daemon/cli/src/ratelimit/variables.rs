//! The environment variables of envoyproxy/ratelimit, with their defaults and effects.
//!
//! The reader, `--variables`, the warnings at the start and the tables in docs/ratelimit.md derive
//! from this table.

use tollgate_daemon::did_you_mean;

use super::value::{self, Kind};

/// A variable that Tollgate reads.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The default of envoyproxy/ratelimit; empty if it has none.
    pub(super) default: &'static str,
    /// The effect in Tollgate.
    pub(super) effect: &'static str,
    /// Whether messages hide the value.
    pub(super) is_secret: bool,
}

/// Variables without effect in Tollgate.
#[derive(Debug)]
pub(super) struct Ignored {
    /// A name, or a prefix followed by `*`.
    pub(super) pattern: &'static str,
    /// Values that need no warning: defaults, and those that match the behaviour of Tollgate.
    pub(super) idle: &'static [&'static str],
    /// Why the variable has no effect, and the alternative.
    pub(super) reason: &'static str,
}

#[derive(Debug)]
pub(super) enum Row {
    Read(Variable),
    Ignored(Ignored),
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) rows: &'static [Row],
}

/// The variable of this name, if Tollgate reads it.
pub(super) fn find(name: &str) -> Option<&'static Variable> {
    all().find(|variable| variable.name == name)
}

/// All variables that Tollgate reads.
pub(super) fn all() -> impl Iterator<Item = &'static Variable> {
    rows().filter_map(|row| match row {
        Row::Read(variable) => Some(variable),
        Row::Ignored(_) => None,
    })
}

/// The remedy for an unknown name, if it resembles a variable that begins with the same word.
pub(super) fn suggest(name: &str) -> Option<String> {
    let (word, _) = name.split_once('_')?;
    let names = all().map(|variable| variable.name);
    did_you_mean(name, names.filter(|known| known.split('_').next() == Some(word)))
}

/// The rule that states why a variable is ignored.
pub(super) fn find_ignored(name: &str) -> Option<&'static Ignored> {
    rows().find_map(|row| match row {
        Row::Ignored(ignored) if ignored.matches(name) => Some(ignored),
        _ => None,
    })
}

fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|group| group.rows)
}

impl Ignored {
    fn matches(&self, name: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.pattern,
        }
    }

    /// Whether the value needs no warning, in any notation.
    pub(super) fn is_idle(&self, text: &str) -> bool {
        self.idle.iter().any(|idle| value::is_equal(idle, text))
    }
}

const fn read(name: &'static str, kind: Kind, default: &'static str, effect: &'static str) -> Row {
    Row::Read(Variable { name, kind, default, effect, is_secret: false })
}

const fn secret(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    effect: &'static str,
) -> Row {
    Row::Read(Variable { name, kind, default, effect, is_secret: true })
}

const fn ignored(
    pattern: &'static str,
    idle: &'static [&'static str],
    reason: &'static str,
) -> Row {
    Row::Ignored(Ignored { pattern, idle, reason })
}

const NO_STATSD: &str = "StatsD is not supported; read `/metrics`, which is also on the debug port";

const ONE_STORE: &str = "there is one store for all limits, the server of REDIS_URL";

const PER_SECOND_DEFAULTS: &[&str] = &[
    "",
    "false",
    "unix",
    "SINGLE",
    "/var/run/nutcracker/ratelimitpersecond.sock",
    "10",
    "10s",
    "0",
    "WAIT",
];

/// One row per line: as blocks, the table would be four times as long.
#[rustfmt::skip]
pub(super) static GROUPS: &[Group] = &[
    Group { title: "Listeners and logging", rows: &[
        read("HOST", Kind::Text, "0.0.0.0", "The address of `/json` and `/healthcheck`."),
        read("PORT", Kind::Whole, "8080", "The port of `/json` and `/healthcheck`."),
        read("GRPC_HOST", Kind::Text, "0.0.0.0", "The address of the rate limit service."),
        read("GRPC_PORT", Kind::Whole, "8081", "The port of the rate limit service."),
        read("GRPC_UDS", Kind::Text, "",
            "A Unix socket for the rate limit service, instead of GRPC_HOST and GRPC_PORT."),
        read("DEBUG_HOST", Kind::Text, "0.0.0.0", "The address of the debug pages."),
        read("DEBUG_PORT", Kind::Whole, "6070", "The port of the debug pages."),
        read("GRPC_MAX_CONNECTION_AGE", Kind::Duration, "24h",
            "The age at which a gRPC connection is closed gracefully, less up to a tenth at \
             random."),
        ignored("GRPC_MAX_CONNECTION_AGE_GRACE", &["1h"],
            "requests in flight on a connection that reaches its age are always completed"),
        read("GRPC_SERVER_USE_TLS", Kind::Bool, "false",
            "Enables TLS for gRPC only. The files are reloaded when they change."),
        read("GRPC_SERVER_TLS_CERT", Kind::Text, "", "The server's certificate, a PEM file."),
        read("GRPC_SERVER_TLS_KEY", Kind::Text, "",
            "The private key of the certificate, a PEM file."),
        read("GRPC_CLIENT_TLS_CACERT", Kind::Text, "",
            "The authorities that sign client certificates, a PEM file. System roots are not \
             used."),
        read("GRPC_CLIENT_TLS_SAN", Kind::Text, "",
            "The subject alternative name that a client certificate must have."),
        ignored("GRPC_SERVER_TLS_CA_CERT", &[""],
            "Envoy Gateway sets it, but envoyproxy/ratelimit does not read it either; \
             GRPC_CLIENT_TLS_CACERT requires client certificates"),
        read("LOG_LEVEL", Kind::Text, "WARN",
            "`trace`, `debug`, `info`, `warn` or `error`; `panic` and `fatal` mean `error`."),
        read("LOG_FORMAT", Kind::Text, "text", "`text` or `json`. The fields are Tollgate's."),
    ] },
    Group { title: "Limits in files", rows: &[
        read("CONFIG_TYPE", Kind::Text, "FILE", "`FILE`, or `GRPC_XDS_SOTW` for an xDS server."),
        read("RUNTIME_ROOT", Kind::Text, "/srv/runtime_data/current",
            "The files are in RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY."),
        read("RUNTIME_SUBDIRECTORY", Kind::Text, "", "See RUNTIME_ROOT."),
        read("RUNTIME_APPDIRECTORY", Kind::Text, "config", "See RUNTIME_ROOT."),
        ignored("RUNTIME_IGNOREDOTFILES", &["true"],
            "only files that end in .yaml or .yml and do not start with a dot are read"),
        read("RUNTIME_WATCH_ROOT", Kind::Bool, "true",
            "Both values detect every change: files that are written, added or removed, and \
             symbolic links that are swapped anywhere in the path."),
        read("MERGE_DOMAIN_CONFIG", Kind::Bool, "false",
            "Merges files of the same domain; otherwise the second one is an error."),
        read("FORCE_START_WITHOUT_INITIAL_CONFIG", Kind::Bool, "false",
            "Starts even if there are no limits yet, or if they are invalid."),
        read("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", Kind::Bool, "false",
            "Reports healthy only while at least one domain is loaded."),
    ] },
    Group { title: "Limits from an xDS server", rows: &[
        read("CONFIG_GRPC_XDS_SERVER_URL", Kind::Text, "localhost:18000",
            "The server, `HOST:PORT`."),
        read("CONFIG_GRPC_XDS_NODE_ID", Kind::Text, "default", "The node id sent to the server."),
        read("CONFIG_GRPC_XDS_NODE_METADATA", Kind::Text, "",
            "The node metadata sent to the server, as `NAME=VALUE,NAME=VALUE`."),
        secret("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", Kind::Pairs, "",
            "Headers of requests to the server."),
        read("CONFIG_GRPC_XDS_SERVER_USE_TLS", Kind::Bool, "false", "Enables TLS to the server."),
        read("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", Kind::Text, "",
            "The authorities that sign the server's certificate, a PEM file that replaces the \
             system roots."),
        read("CONFIG_GRPC_XDS_SERVER_TLS_SAN", Kind::Text, "",
            "The name that the server's certificate must have, instead of the host name."),
        read("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", Kind::Text, "",
            "The client certificate, a PEM file."),
        read("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", Kind::Text, "",
            "The private key of the client certificate."),
        ignored("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", &["3s"],
            "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL and XDS_CLIENT_BACKOFF_MAX_INTERVAL apply to \
             connections too"),
        read("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", Kind::Duration, "10s",
            "The first delay after a failure; 1 s if not set."),
        read("XDS_CLIENT_BACKOFF_MAX_INTERVAL", Kind::Duration, "60s",
            "The longest delay after failures; 30 s if not set."),
        ignored("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", &["0.5"], "delays always have jitter"),
        ignored("XDS_CLIENT_BACKOFF_JITTER", &["true"], "delays always have jitter"),
        read("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", Kind::Whole, "",
            "The maximum size of a message from the server."),
    ] },
    Group { title: "Decisions and responses", rows: &[
        read("BACKEND_TYPE", Kind::Text, "redis",
            "`redis`, or Tollgate's own `memory`, which needs no server and serves one replica. \
             `memcache` is an error."),
        read("CACHE_KEY_PREFIX", Kind::Text, "",
            "The namespace on Redis, by default `tollgate`. Characters that a namespace cannot \
             contain become `-`."),
        read("NEAR_LIMIT_RATIO", Kind::Decimal, "0.8",
            "The share of a limit above which requests count as near the limit."),
        read("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", Kind::Bool, "false",
            "Charges a denied request nothing (`charging: atomic`), in one round trip and \
             without a race."),
        read("SHADOW_MODE", Kind::Bool, "false",
            "Allows every request, whatever its descriptors say."),
        read("QUOTA_MODE", Kind::Bool, "false",
            "Treats every limit as a quota: a request is allowed while at least one of its \
             limits is not exceeded."),
        read("RESPONSE_DYNAMIC_METADATA", Kind::Bool, "false",
            "Sends domain, descriptors and rule metadata to Envoy."),
        read("LIMIT_RESPONSE_HEADERS_ENABLED", Kind::Bool, "false",
            "Adds the following three headers to the responses of Envoy."),
        read("LIMIT_LIMIT_HEADER", Kind::Text, "RateLimit-Limit",
            "The name of the header with the limit."),
        read("LIMIT_REMAINING_HEADER", Kind::Text, "RateLimit-Remaining",
            "The name of the header with the remaining quota."),
        read("LIMIT_RESET_HEADER", Kind::Text, "RateLimit-Reset",
            "The name of the header with the time until the reset."),
        ignored("EXPIRATION_JITTER_MAX_SECONDS", &["300"],
            "each key expires when its own limit has recovered, so expiry needs no jitter"),
        ignored("LOCAL_CACHE_SIZE_IN_BYTES", &["0"],
            "concurrent requests share a round trip; there is no cache"),
    ] },
    Group { title: "Redis", rows: &[
        read("REDIS_SOCKET_TYPE", Kind::Text, "unix",
            "`tcp` or `unix`. If not set, REDIS_URL means `unix` if it is a path, and `tcp` \
             otherwise."),
        read("REDIS_TYPE", Kind::Text, "SINGLE", "`SINGLE`, `SENTINEL` or `CLUSTER`."),
        secret("REDIS_URL", Kind::Text, "/var/run/nutcracker/ratelimit.sock",
            "`HOST:PORT` or a path for `SINGLE`, `MASTER,HOST:PORT,…` for `SENTINEL`, \
             `HOST:PORT,…` for `CLUSTER`. Required; Tollgate has no default."),
        secret("REDIS_AUTH", Kind::Text, "", "`PASSWORD` or `USER:PASSWORD`."),
        secret("REDIS_SENTINEL_AUTH", Kind::Text, "",
            "`PASSWORD` or `USER:PASSWORD` of the sentinels."),
        read("REDIS_TLS", Kind::Bool, "false", "Enables TLS."),
        read("REDIS_TLS_CACERT", Kind::Text, "",
            "The authorities that sign the server's certificate, a PEM file that replaces the \
             system roots."),
        read("REDIS_TLS_CLIENT_CERT", Kind::Text, "", "The client certificate, a PEM file."),
        read("REDIS_TLS_CLIENT_KEY", Kind::Text, "",
            "The private key of the client certificate, a PEM file."),
        ignored("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", &["false"],
            "the certificate must always contain the server's name; write that name in REDIS_URL"),
        read("REDIS_TIMEOUT", Kind::Duration, "10s",
            "The deadline of a decision and of a connection attempt. If not set, 15 ms and 1 s: \
             Envoy waits 20 ms."),
        read("REDIS_POOL_SIZE", Kind::Whole, "10",
            "The number of connections to each server, at most 64. If not set, 2: each carries \
             many requests at once."),
        read("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", Kind::Bool, "false",
            "Reports unhealthy while Redis is unavailable. Before the first connection, this is \
             always reported."),
        ignored("REDIS_PIPELINE_*", &["0"],
            "concurrent requests are always sent together, and none waits for others"),
        ignored("REDIS_CLUSTER_PIPELINE_PARALLELISM", &["1"],
            "the nodes of a cluster are always queried in parallel"),
        ignored("REDIS_POOL_ON_EMPTY_BEHAVIOR", &["WAIT"],
            "connections are shared, so the pool cannot be empty; REDIS_TIMEOUT is the deadline \
             of a decision"),
        ignored("REDIS_STARTUP_*", &["1s", "30s", "0"],
            "the program starts without Redis, reports unhealthy, and connects as soon as \
             possible"),
        ignored("REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR", &["false"],
            "a server that becomes read-only is always replaced by the new primary"),
        ignored("REDIS_PERSECOND", &["", "false"], ONE_STORE),
        // Not in the list for all: `1` is also a spelling of `true`.
        ignored("REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", &["", "1"], ONE_STORE),
        ignored("REDIS_PERSECOND_*", PER_SECOND_DEFAULTS, ONE_STORE),
    ] },
    Group { title: "Memcached", rows: &[
        ignored("MEMCACHE_*", &["", "2", "0", "false"],
            "Memcached is not a supported store; set BACKEND_TYPE to redis or memory"),
    ] },
    Group { title: "Metrics", rows: &[
        read("USE_PROMETHEUS", Kind::Bool, "false",
            "Adds a listener for metrics. The debug port serves `/metrics` in any case."),
        read("PROMETHEUS_ADDR", Kind::Text, ":9090", "The address of that listener."),
        read("PROMETHEUS_PATH", Kind::Text, "/metrics",
            "The path of the metrics on that listener."),
        ignored("PROMETHEUS_MAPPER_YAML", &[""],
            "the metrics have the names of envoyproxy/ratelimit's own mapping"),
        ignored("PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", &["false"],
            "ratelimit_service_response_time_seconds is in seconds; multiply by 1000 in the \
             query"),
        ignored("USE_STATSD", &["false"], NO_STATSD),
        ignored("STATSD_*", &["localhost", "8125"], NO_STATSD),
        ignored("USE_DOG_STATSD*", &["", "false"], NO_STATSD),
        ignored("EXTRA_TAGS", &[""],
            "metrics have no additional labels; add them in Prometheus with \
             `static_configs.labels` or `relabel_configs`"),
        ignored("STATS_FLUSH_INTERVAL", &["10s"], "`/metrics` always shows the current values"),
        ignored("DISABLE_STATS", &["false"], "counting costs no I/O; leave `/metrics` unread"),
    ] },
    Group { title: "Tracing", rows: &[
        read("TRACING_ENABLED", Kind::Bool, "false",
            "Sends a span for each decision to the collector at `OTEL_EXPORTER_OTLP_ENDPOINT`. \
             Requires a build with the feature `otlp`."),
        read("TRACING_EXPORTER_PROTOCOL", Kind::Text, "http",
            "`http`. `grpc` is an error; collectors also have an HTTP port."),
        read("TRACING_SERVICE_NAME", Kind::Text, "RateLimit", "The service name in spans."),
        read("TRACING_SERVICE_NAMESPACE", Kind::Text, "", "The service namespace in spans."),
        read("TRACING_SERVICE_INSTANCE_ID", Kind::Text, "", "The service instance id in spans."),
        read("TRACING_SAMPLING_RATE", Kind::Decimal, "1",
            "The share of traces to send, unless the caller has decided."),
    ] },
];
