//! How requests are decided and answered.

use super::super::value::Kind;
use super::{Group, honoured, ignored};

pub(super) const GROUP: Group = Group {
    title: "Decisions and answers",
    variables: &[
        honoured(
            "BACKEND_TYPE",
            Kind::Text,
            "redis",
            "`redis`, or `memory`, which is Tollgate's own: no server, for one replica. With \
             `memcache` it does not start.",
        ),
        honoured(
            "CACHE_KEY_PREFIX",
            Kind::Text,
            "",
            "The namespace on Redis, `tollgate` if it is empty; signs that a namespace cannot have \
             become `-`.",
        ),
        honoured(
            "NEAR_LIMIT_RATIO",
            Kind::Decimal,
            "0.8",
            "From which share of a limit on hits are counted as near it.",
        ),
        honoured(
            "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
            Kind::Truth,
            "false",
            "With `true` a denied request is charged nothing at all (`charging: atomic`), in one \
             round trip and without a race.",
        ),
        honoured(
            "SHADOW_MODE",
            Kind::Truth,
            "false",
            "Whether every request passes, whatever its descriptors say.",
        ),
        honoured(
            "QUOTA_MODE",
            Kind::Truth,
            "false",
            "Whether every limit is a quota: a request passes while one of its limits is not over.",
        ),
        honoured(
            "RESPONSE_DYNAMIC_METADATA",
            Kind::Truth,
            "false",
            "Whether Envoy is told domain, descriptors and a rule's metadata.",
        ),
        honoured(
            "LIMIT_RESPONSE_HEADERS_ENABLED",
            Kind::Truth,
            "false",
            "Whether Envoy is told three headers for its client's response.",
        ),
        honoured("LIMIT_LIMIT_HEADER", Kind::Text, "RateLimit-Limit", "The name of the first."),
        honoured(
            "LIMIT_REMAINING_HEADER",
            Kind::Text,
            "RateLimit-Remaining",
            "The name of the second.",
        ),
        honoured("LIMIT_RESET_HEADER", Kind::Text, "RateLimit-Reset", "The name of the third."),
        ignored(
            "EXPIRATION_JITTER_MAX_SECONDS",
            Kind::Whole,
            "300",
            "a key expires when its limit has recovered; nothing has to be spread, for each \
             expires on its own",
        ),
        ignored(
            "LOCAL_CACHE_SIZE_IN_BYTES",
            Kind::Whole,
            "0",
            "requests that come together share one round trip, so there is no cache to size",
        ),
    ],
};
