//! The fields of every section.

use std::time::Duration;

use super::field::{Field, Kind, Section};
use super::format::{self, Format};
use super::scalar::Scalar;

const MILLISECOND: Duration = Duration::from_millis(1);

const ADDRESS: Kind = Kind::Scalar(Scalar::Address);
const BOOL: Kind = Kind::Scalar(Scalar::Bool);
const FILE: Kind = Kind::Scalar(Scalar::Path { what: "the path of a file" });
const TEXT: Kind = Kind::Scalar(Scalar::Text);
const KEYS: Kind = list(&format::KEY);
static HEADER_VALUE: Kind = text(&format::HEADER_VALUE);
static SERVER: Kind = text(&format::SERVER);
static LIMITS_OR_UNLIMITED: Kind = Kind::ListOr(Scalar::Format(&format::LIMIT), "unlimited");

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Scalar(Scalar::Bytes { min, max })
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Scalar(Scalar::Count { min, max })
}

const fn duration(min: Duration) -> Kind {
    Kind::Scalar(Scalar::Duration { min })
}

const fn keyword(words: &'static [&'static str]) -> Kind {
    Kind::Scalar(Scalar::Keyword { words })
}

const fn text(format: &'static Format) -> Kind {
    Kind::Scalar(Scalar::Format(format))
}

const fn list(format: &'static Format) -> Kind {
    Kind::List(Scalar::Format(format))
}

const fn keywords(words: &'static [&'static str]) -> Kind {
    Kind::List(Scalar::Keyword { words })
}

const fn one_or_list(format: &'static Format) -> Kind {
    Kind::ScalarOrList(Scalar::Format(format))
}

const fn map(names: &'static Format, values: &'static Kind) -> Kind {
    Kind::Map(Scalar::Format(names), values)
}

/// Defines sections: the name of each field, its kind, its default and its description.
macro_rules! sections {
    ($($visibility:vis $section:ident {
        $($name:ident: $kind:expr, $default:literal
            $(, $method:ident($($argument:literal)?))* => $about:literal;)*
    })*) => {
        $($visibility static $section: Section = Section {
            fields: &[$(
                Field::new(stringify!($name), $kind, $default, $about)$(.$method($($argument)?))*
            ),*],
        };)*
    };
}

sections! {
    pub(crate) ROOT {
        namespace: text(&format::NAMESPACE), "tollgate", needs_restart() =>
            "The prefix of all keys on Redis, which separates installations that share a server. \
             The memory store is never shared.";
        store: Kind::Section(&STORE), "{}" => "The store for the state of limits.";
        listen: Kind::Section(&LISTEN), "{}" => "The listeners: `HOST:PORT`, `unix:PATH` or `off`.";
        tokens: Kind::Sections(&TOKEN), "[]" =>
            "Access tokens. With tokens, every request needs one. Without, every client may check \
             and read, and `operators` states which clients may operate.";
        operators: keyword(&["tokens", "loopback"]), "tokens" =>
            "Which clients may send operator commands and limits in place of a policy: `tokens` \
             admits those whose token has the scope `operate` and, without `tokens`, clients on a \
             Unix socket; `loopback` also admits, without `tokens`, clients on this machine. That \
             is for development only: any local program, and a proxy that adds no header, may \
             operate.";
        policies: map(&format::POLICY_NAME, &Kind::Section(&POLICY)), "{}" =>
            "The policies by name.";
        rules: Kind::Sections(&RULE), "[]" =>
            "The rules for forward auth. The first rule that matches applies, and its checks are \
             decided together. A rule has either `checks` or the fields of a single check.";
        default: keyword(&["pass", "deny"]), "pass" =>
            "What happens to a request that no rule matches.";
        ambiguous_paths: keyword(&["strictest", "deny"]), "strictest" =>
            "What happens to a request whose path servers may read in different ways, such as \
             `/a;b`, `/a%2Fb` or `/a/../b`: the rules for all readings apply, or it is denied.";
        path_case: keyword(&["sensitive", "insensitive"]), "sensitive" =>
            "Whether `/Login` is another path than `/login`. Use `insensitive` if the application \
             ignores case, like those in Express or ASP.NET; `{path}` is then in lower case.";
        trusted_proxies: list(&format::PROXY), "[]" =>
            "The proxies that are trusted to report the client's address: networks, addresses, \
             and `unix` for peers on a Unix socket.";
        ipv6_prefix: count(32, 128), "64" =>
            "The length of the IPv6 prefix that `{ip}` stands for: all addresses of such a \
             network count as one client.";
        jwt: Kind::Section(&JWT), "{}" =>
            "Validation of the tokens that `{jwt.CLAIM}` in key templates reads.";
        envoy: Kind::Section(&ENVOY), "{}" => "Envoy's rate limit service.";
        resp: Kind::Section(&RESP), "{}" => "The Redis protocol.";
        headers: keywords(&["draft11", "legacy-delta", "legacy-epoch", "draft6", "none"]),
            "[draft11]" =>
            "The rate limit headers of responses, in one or more styles: `draft11` is \
             `RateLimit-Policy` and `RateLimit`; `draft6` is `RateLimit-Limit`, \
             `RateLimit-Remaining` and `RateLimit-Reset`; `legacy-delta` and `legacy-epoch` are \
             `X-RateLimit-…` with the reset as seconds from now or as a Unix time; `[none]` \
             disables them.";
        privacy: keyword(&["plain", "masked", "hashed"]), "plain" =>
            "How keys appear in logs and in the audit log: unchanged, by their first characters, \
             or hashed.";
        log: Kind::Section(&LOG), "{}" => "Logging to standard error.";
        drain: Kind::Section(&DRAIN), "{}" => "Graceful shutdown.";
        limits: Kind::Section(&LIMITS), "{}" => "Resource limits for requests and connections.";
    }

    STORE {
        url: text(&format::STORE_URL), "memory", needs_restart() =>
            "`memory`, `redis://HOST`, `redis+cluster://HOST,HOST`, \
             `redis+sentinel://HOST,HOST/MASTER` or `redis+unix:///PATH`. `rediss` uses TLS; \
             `valkey` works like `redis`.";
        data: Kind::Scalar(Scalar::Path { what: "a directory" }), "null", needs_restart() =>
            "The snapshot directory, so that in-memory state survives a restart. Memory store \
             only.";
        snapshot_interval: duration(Duration::from_millis(100)), "5s", needs_restart() =>
            "The interval between snapshots, and so the most that a crash can lose. Memory store \
             only.";
        max_keys: count(1, u64::MAX), "1000000", needs_restart() =>
            "The maximum number of keys. Memory store only.";
        max_bytes: bytes(1024 * 1024, 1 << 50), "256MiB", needs_restart() =>
            "The maximum size of keys, blocks and request ids together, for which the process needs \
             up to a third more. Request ids take at most half of it. The default is enough for \
             `max_keys` with token buckets, and 200,000 request ids. Memory store only.";
        table_full: keyword(&["deny", "allow"]), "deny", needs_restart() =>
            "The decision for a new key while `max_keys` or `max_bytes` is used up by keys that deny or \
             hold leases. Memory store only.";
        connections: count(1, 64), "2", needs_restart() =>
            "The number of connections to each Redis server. This field and all that follow apply \
             to Redis stores only.";
        deadline: duration(MILLISECOND), "15ms", needs_restart() =>
            "The deadline of a decision, after which the policy's `on_store_error` applies.";
        connect_timeout: duration(MILLISECOND), "1s", needs_restart() =>
            "The timeout for establishing a connection.";
        call_timeout: duration(MILLISECOND), "500ms", needs_restart() =>
            "The timeout of a call, after which its connection is replaced and its outcome is \
             unknown. Set it above `deadline`.";
        queue: count(1, u64::MAX), "10000", needs_restart() =>
            "The maximum number of requests that wait for a server. Further requests fail at once.";
        batch: count(1, 500), "64", needs_restart() =>
            "The maximum number of requests in a call.";
        groups: count(1, 16_384), "null", needs_restart() =>
            "The number of groups into which keys are divided by hash tags: 64 on a cluster by \
             default, none elsewhere. Set it for a proxy that distributes keys over several \
             servers. All daemons of a namespace need the same number: on a cluster another number \
             is an error, elsewhere it finds no counters.";
        request_id_horizon: duration(Duration::from_secs(1)), "30s", needs_restart() =>
            "How long request ids are remembered, and charges can be settled.";
        ca: FILE, "null", needs_restart() => "The CA bundle for TLS. The default is the system's.";
        cert: FILE, "null", needs_restart() => "The client certificate for TLS; requires `key`.";
        key: FILE, "null", needs_restart() => "The private key of `cert`.";
        username: TEXT, "null", needs_restart() => "The user name, instead of the one in the URL.";
        password_file: FILE, "null", needs_restart() =>
            "A file that contains the password, instead of the one in the URL. When its content \
             changes, open connections log in again, one after the other.";
        address_map: map(&format::SERVER, &SERVER), "{}", needs_restart() =>
            "For addresses that a cluster or a sentinel announces, the addresses to connect to \
             instead, for servers behind a NAT or in containers. Only with `+cluster` and \
             `+sentinel`.";
        tls_server_name: TEXT, "null", needs_restart() =>
            "The name that the certificates of the servers must have, instead of their host. Only \
             with `rediss`.";
        sentinel_username: TEXT, "null", needs_restart() =>
            "The user name for the sentinels. Only with `+sentinel`.";
        sentinel_password_file: FILE, "null", needs_restart() =>
            "A file that contains the password for the sentinels. When its content changes, the open \
             connection to a sentinel logs in again. Only with `+sentinel`.";
    }

    LISTEN {
        http: ADDRESS, "127.0.0.1:8080", needs_restart() =>
            "The listener for `/v1`, forward auth, `/livez` and `/readyz`.";
        grpc: ADDRESS, "127.0.0.1:8081", needs_restart() =>
            "The listener for Envoy's rate limit service over gRPC.";
        resp: ADDRESS, "127.0.0.1:6380", needs_restart() => "The listener for Redis clients.";
        metrics: ADDRESS, "127.0.0.1:9091", needs_restart() => "The listener for `/metrics`.";
        admin: ADDRESS, "127.0.0.1:9090", needs_restart() =>
            "The listener for the dashboard and its API. Other addresses than loopback and Unix \
             sockets require `tokens`. If another program uses the default address, the daemon \
             starts without the dashboard and logs a warning.";
        hosts: list(&format::HOST), "[]" =>
            "Names, besides `localhost` and IP addresses, under which clients reach a listener of \
             HTTP on a loopback address: hosts without port, with a leading `*.` all subdomains. \
             The JSON API and the dashboard refuse requests for other hosts there, which web pages \
             send after they have pointed a name of theirs at this machine.";
        tls: Kind::Section(&TLS), "{}" => "TLS for all listeners, if `cert` is set.";
    }

    TLS {
        cert: FILE, "null", needs_restart() =>
            "The server certificate and its intermediate certificates, as PEM; requires `key`. \
             The file is reloaded when it changes.";
        key: FILE, "null", needs_restart() => "The private key of `cert`, as PEM.";
        client_ca: FILE, "null", needs_restart() =>
            "The CA bundle that verifies client certificates, as PEM. By default clients need no \
             certificate.";
    }

    TOKEN {
        name: text(&format::TOKEN_NAME), "", required("a token needs a name, such as gateway") =>
            "The name of the token in the audit log.";
        token: text(&format::TOKEN), "null", secret() => "The token. Prefer `token_file`.";
        token_file: FILE, "null" =>
            "A file that contains the token. It is reloaded when it changes.";
        token_sha256: text(&format::TOKEN_SHA256), "null", secret() =>
            "The SHA-256 digest of the token, so that the configuration contains no secret: the \
             output of `printf %s TOKEN | sha256sum`. Use it for random tokens only; a short one \
             can be guessed from its digest.";
        certificate: text(&format::CERTIFICATE_NAME), "null" =>
            "A name of a client certificate, which then needs no token: a DNS name or a URI among \
             its subject alternative names. Requires `listen.tls.client_ca`.";
        scopes: keywords(&["check", "operate", "read", "admin"]), "",
            required("a token needs scopes, such as [check]") =>
            "What the token permits: `check` to make decisions, `operate` to reset, block, refund \
             and penalize, `read` to read state, `admin` everything.";
        policies: list(&format::POLICY_PATTERN), "[\"*\"]" =>
            "The policies that the token permits access to: names, prefixes followed by `*`, or \
             `\"*\"`.";
    }

    POLICY {
        limits: list(&format::LIMIT), "", required("a policy needs a limit, such as \"10/s\"") =>
            "The limits. All of them apply, and a request is charged to all of them or to none.";
        mode: keyword(&["exact", "leased"]), "exact" =>
            "Whether the store decides each request, or quota of busy keys is charged in advance.";
        hold: duration(Duration::from_millis(10)), "null" =>
            "How long quota may be held with `mode: leased`; by default at most 1s.";
        on_store_error: keyword(&["local", "deny", "allow"]), "local" =>
            "The decision while the store is unavailable: `local` decides with this process's share \
             of each limit, and charges the store afterwards.";
        shadow: BOOL, "false" => "Whether decisions are made and recorded but never enforced.";
        ban: Kind::Section(&BAN), "{}" =>
            "Denies every check of a key for a time once its limits have denied it too often.";
        max_keys: count(1, u64::MAX), "null" =>
            "The maximum number of keys of this policy, in a table of its own. Memory store only.";
        overrides: map(&format::OVERRIDDEN, &LIMITS_OR_UNLIMITED), "{}" =>
            "Other limits, or `unlimited`, for some keys: an exact key, a prefix followed by `*`, \
             or a network for keys that are IP addresses.";
        overrides_file: FILE, "null" =>
            "A file of up to 1,000,000 overrides, as CSV or JSON Lines, reloaded when it changes.";
        tiers: map(&format::TIER, &LIMITS_OR_UNLIMITED), "{}" =>
            "Other limits, or `unlimited`, that a check or a rule selects with `tier`. A tier \
             replaces all limits of the policy, and an override takes precedence over a tier.";
        allow: KEYS, "[]" =>
            "Keys that are always admitted: exact keys, or prefixes followed by `*`.";
        deny: KEYS, "[]" => "Keys that are always denied: exact keys, or prefixes followed by `*`.";
        track: Kind::Section(&TRACK), "{}" =>
            "What is recorded about each key, for `tollgate keys`, `tollgate inspect` and the dashboard. \
             Set at least one of `recent`, `usage` and `timeline`.";
    }

    TRACK {
        recent: count(0, 100), "0" =>
            "How many of the last decisions of a key are kept, each with its time, cost, answer and \
             the `note` of the request.";
        usage: BOOL, "false" =>
            "Whether the first and last decision and the totals of a key are kept, for queries.";
        timeline: text(&format::TIMELINE), "null" =>
            "Allowed and denied requests and costs per interval, over a duration: `24h by 1m`.";
        max_keys: count(1, 100_000), "10000" =>
            "The maximum number of tracked keys of the policy. If there are more, those with the \
             oldest requests and the fewest denials are forgotten first.";
        max_bytes: bytes(64 * 1024, 1 << 40), "64MiB" =>
            "The maximum size of the records of the policy. Memory store only; on Redis, `max_keys` \
             bounds it.";
        keep: duration(Duration::from_secs(60)), "null" =>
            "How long a key is remembered after its last request. The default is `24h`, or the \
             duration of the timeline if that is longer.";
    }

    BAN {
        denials: count(1, 1_000_000), "null" =>
            "How many denials by the policy's limits ban a key. Other denials, such as by a block or \
             a list, do not count.";
        within: duration(Duration::ZERO), "null" =>
            "The window in which denials are counted, which the first one opens: whole \
             milliseconds from 1ms to 366d.";
        for: duration(Duration::ZERO), "null" =>
            "How long the key is banned: whole milliseconds from 1ms to 366d.";
    }

    MATCH {
        path: one_or_list(&format::PATH), "[]" =>
            "Path patterns, one of which must match the normalized path: `*` matches one segment, \
             `**` any number of segments.";
        method: one_or_list(&format::METHOD), "[]" =>
            "Methods, one of which must match. `GET` also matches `HEAD`.";
        host: one_or_list(&format::HOST), "[]" =>
            "Hosts without port, one of which must match. A leading `*.` matches all subdomains.";
        headers: map(&format::HEADER_NAME, &HEADER_VALUE), "{}" =>
            "Header names, each with the required value: an exact value, a prefix followed by \
             `*`, or `*` for any value. All must match.";
    }

    JWT {
        jwks_file: FILE, "null" => "The public keys of the token issuer, as a JSON Web Key Set.";
        verify: BOOL, "true" =>
            "Whether signatures and times are verified. Set it to `false` only if the gateway has \
             verified the token; otherwise any client can claim anything.";
        issuer: TEXT, "null" => "The required value of `iss`, if any.";
        audience: TEXT, "null" => "The value that `aud` must contain, if any.";
        require_exp: BOOL, "true" =>
            "Whether a token without `exp`, which would be valid for ever, is invalid. Only with \
             `verify`.";
        header: text(&format::HEADER_NAME), "authorization" =>
            "The header that carries the token, with or without `Bearer`.";
        leeway: duration(Duration::ZERO), "1min" =>
            "The tolerated difference between the issuer's clock and the daemon's.";
    }

    ENVOY {
        config: Kind::ScalarOrList(Scalar::Path { what: "the path of a file or a directory" }),
            "[]" =>
            "Configuration files of envoyproxy/ratelimit, or directories of such files, read \
             unchanged. A domain that no file defines is the name of a policy.";
        merge_domains: BOOL, "false" =>
            "Whether several files may define the same domain. Otherwise the second one is \
             rejected.";
        charging: keyword(&["atomic", "reference"]), "atomic" =>
            "`atomic` charges all descriptors of a request or none, and denied requests nothing; \
             `reference` charges each by itself, denied ones too, as envoyproxy/ratelimit does.";
        on_store_error: keyword(&["local", "deny", "allow", "error"]), "error" =>
            "The response for descriptors with a limit from a file or a control plane while the \
             store is unavailable: a decision with this process's share of the limit, over the \
             limit, within the limit, or, as from envoyproxy/ratelimit, an error, so that Envoy's \
             `failure_mode_deny` decides. Policies have their own `on_store_error`.";
        refunds_and_limits: keyword(&["rules", "all", "operators"]), "rules" =>
            "Who may give hits back (`is_negative_hits`) and send a `limit` in a descriptor: with \
             `rules` every client for descriptors whose limit is from a file or a control plane, \
             and operators for policies; with `all` every client; with `operators` operators only.";
        response_headers: BOOL, "false" =>
            "Whether responses to Envoy contain the headers configured in `headers`, for the \
             client's response.";
        dynamic_metadata: BOOL, "false" =>
            "Whether responses to Envoy contain the domain, the descriptors and the rule's \
             `metadata` as dynamic metadata.";
        note_entry: TEXT, "null" =>
            "The key of the entry that is the note of a descriptor of a policy, and no part of its \
             key. The policy records the first 256 bytes of its value with `track.recent`.";
        shadow: BOOL, "false" => "Whether every request is admitted, regardless of its limits.";
        reference_metrics: BOOL, "false" =>
            "Whether the metrics page also contains metrics under the names of \
             envoyproxy/ratelimit.";
        compare: Kind::Section(&COMPARE), "{}" =>
            "Another rate limit service that answers gRPC calls, while Tollgate decides beside it and \
             counts disagreements: for a migration.";
        xds: Kind::Section(&XDS), "{}" =>
            "A control plane that provides the configuration, instead of files.";
    }

    COMPARE {
        url: TEXT, "null" => "`grpc://HOST:PORT` of the service, or `grpcs://HOST:PORT` for TLS.";
        timeout: duration(MILLISECOND), "1s" =>
            "How long a call of the service may take. Afterwards the client gets the error \
             `DEADLINE_EXCEEDED`.";
    }

    RESP {
        throttle_on_store_error: keyword(&["local", "deny", "allow", "error"]), "error" =>
            "The reply to `CL.THROTTLE`, whose limit is in the command, while the store is \
             unavailable: a decision with this process's share of the limit, limited, not limited, \
             or the error `TRYAGAIN`. Policies have their own `on_store_error`.";
    }

    XDS {
        server: TEXT, "null", needs_restart() =>
            "`HOST:PORT` of a server that provides `ratelimit.config.ratelimit.v3` through \
             aggregated discovery. `config` is then ignored.";
        node_id: TEXT, "default", needs_restart() => "The node ID that the daemon sends.";
        ca: FILE, "null", needs_restart() =>
            "The CA bundle that verifies the server, as PEM. Enables TLS.";
        cert: FILE, "null", needs_restart() => "The client certificate, as PEM.";
        key: FILE, "null", needs_restart() => "The private key of `cert`, as PEM.";
    }

    LOG {
        level: keyword(&["error", "warn", "info", "debug", "trace"]), "info" =>
            "The lowest severity that is logged.";
        format: keyword(&["text", "json"]), "text", needs_restart() =>
            "Lines of text, or one JSON object per line.";
    }

    DRAIN {
        delay: duration(Duration::ZERO), "5s", needs_restart() =>
            "How long the daemon, after a signal to stop, reports `/readyz` as failing and still \
             accepts connections, so that load balancers stop sending to it.";
        timeout: duration(MILLISECOND), "20s", needs_restart() =>
            "How long requests in flight may take after that delay.";
    }

    LIMITS {
        key_bytes: bytes(1, 65_536), "4KiB" =>
            "The maximum size of a key. The memory store and Redis keep a key of more than 256 \
             bytes as its hash.";
        body: bytes(64, 64 * 1024 * 1024), "64KiB" => "The maximum size of a request body.";
        checks: count(1, 32), "32" => "The maximum number of checks in a request.";
        connections: count(1, 1_000_000), "10000" =>
            "The maximum number of open connections of each listener. At the limit, idle \
             connections are closed in favour of new ones. With tokens, connections that have sent \
             no valid token share at most nine tenths of it, and the oldest of them give way.";
        peer_connections: count(1, 1_000_000), "1000" =>
            "The maximum number of open connections from one address, on each listener; loopback \
             addresses count too, and a network of IPv6 with 64 bits counts as one address. More \
             are closed at once.";
        header_timeout: duration(MILLISECOND), "10s" =>
            "The timeout for receiving the head of a request, and the timeout for receiving its \
             body.";
        idle: duration(MILLISECOND), "5min" => "The time after which an idle connection is closed.";
        pipeline: count(1, 1_000_000), "16384" =>
            "The maximum number of commands that a Redis client may queue in a transaction, and \
             of pipelined commands that are decided before the daemon replies.";
        output: bytes(16 * 1024, 64 * 1024 * 1024), "1MiB" =>
            "The size of the responses of a connection that wait to be sent from which on no further \
             request of it is answered, until the client has read some.";
        write_timeout: duration(MILLISECOND), "10s" =>
            "The time after which a connection is closed whose client reads no byte of the \
             responses that wait for it.";
        buffers: bytes(1024 * 1024, 1024 * 1024 * 1024 * 1024), "256MiB" =>
            "The maximum size of the buffers of all connections together: Redis commands and \
             transactions that are not complete, and responses that are not sent. The first 4 KiB \
             in each direction of a connection are not counted. While the buffers are full, \
             connections that need more are closed.";
        connection_age: duration(Duration::from_secs(1)), "30min" =>
            "The age, randomly up to a tenth less, at which a gRPC connection without streams of \
             quotas is closed gracefully, so that clients spread over all daemons.";
    }
}

const RULE_POLICY: Field = Field::new("policy", TEXT, "null", "The name of the policy.");
const KEY: Field = Field::new(
    "key",
    text(&format::TEMPLATE),
    "null",
    "The key template: text with the placeholders `{ip}`, `{host}`, `{method}`, `{path}`, \
     `{path.N}`, `{query.NAME}`, `{header.NAME}`, `{cookie.NAME}` and `{jwt.CLAIM}`. A bar \
     separates alternatives, of which the first with a value is used, as in `{jwt.sub|ip}`; the \
     key then begins with the source, as in `jwt.sub=42`.",
);
const TIER: Field = Field::new(
    "tier",
    text(&format::TEMPLATE),
    "null",
    "The tier of the policy, as a template like `key`. Without a value, or with one that names no \
     tier of the policy, the policy's own limits \
     apply.",
);
const COST: Field =
    Field::new("cost", count(0, tollgate::Cost::MAX.get()), "1", "The cost of a request.");
const ON_MISSING: Field = Field::new(
    "on_missing",
    keyword(&["skip", "deny", "error"]),
    "deny",
    "What happens if the key has no value: the check is skipped, the request is denied, or the \
     response is an error. With `error`, a fail-open gateway admits any client that omits the \
     value.",
);

const NOTE: Field = Field::new(
    "note",
    text(&format::TEMPLATE),
    "null",
    "The note of a request, as a template like `key`; `track.recent` keeps its first 256 bytes.",
);

/// A rule has its checks in `checks`, or the fields of a single check.
static RULE: Section = Section {
    fields: &[
        Field::new(
            "match",
            Kind::Section(&MATCH),
            "{}",
            "The conditions on a request. All of them must be met.",
        ),
        Field::new("checks", Kind::Sections(&CHECK), "[]", "The checks, decided together."),
        RULE_POLICY,
        KEY,
        TIER,
        COST,
        ON_MISSING,
        NOTE,
    ],
};

static CHECK: Section = Section { fields: &[RULE_POLICY, KEY, TIER, COST, ON_MISSING, NOTE] };
