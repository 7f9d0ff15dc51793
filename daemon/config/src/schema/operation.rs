//! `headers`, `privacy`, `log`, `drain` and `limits`.

use std::time::Duration;

use super::store::MILLISECOND;
use super::{Field, Kind, Scalar, Section};

pub(super) const HEADERS: Field = Field::new(
    "headers",
    Kind::List(Scalar::keywords(&["draft11", "legacy-delta", "legacy-epoch", "draft6", "none"])),
    "[draft11]",
    "The rate limit headers of responses, in one or more styles: `draft11` is `RateLimit-Policy` \
     and `RateLimit`; `draft6` is `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`; \
     `legacy-delta` and `legacy-epoch` are `X-RateLimit-…` with the reset as seconds from now or \
     as a Unix time; `[none]` disables them.",
);

pub(super) const PRIVACY: Field = Field::new(
    "privacy",
    Kind::Scalar(Scalar::keywords(&["plain", "masked", "hashed"])),
    "plain",
    "How keys appear in logs and in the audit log: unchanged, by their first characters, or \
     hashed.",
);

pub(super) static LOG: Section = Section {
    fields: &[
        Field::new(
            "level",
            Kind::Scalar(Scalar::keywords(&["error", "warn", "info", "debug", "trace"])),
            "info",
            "The lowest severity that is logged.",
        ),
        Field::new(
            "format",
            Kind::Scalar(Scalar::keywords(&["text", "json"])),
            "text",
            "Lines of text, or one JSON object per line.",
        )
        .needs_restart(),
    ],
    later: &[],
};

pub(super) static DRAIN: Section = Section {
    fields: &[
        Field::new(
            "delay",
            Kind::Scalar(Scalar::Duration { min: Duration::ZERO }),
            "5s",
            "How long the daemon, after a signal to stop, reports `/readyz` as failing and still \
             accepts connections, so that load balancers stop sending to it.",
        )
        .needs_restart(),
        Field::new(
            "timeout",
            Kind::Scalar(Scalar::Duration { min: MILLISECOND }),
            "20s",
            "How long requests in flight may take after that delay.",
        )
        .needs_restart(),
    ],
    later: &[],
};

pub(super) static LIMITS: Section = Section {
    fields: &[
        Field::new(
            "key_bytes",
            Kind::Scalar(Scalar::Bytes { min: 1, max: 65_536 }),
            "65536",
            "The maximum size of a key.",
        ),
        Field::new(
            "body",
            Kind::Scalar(Scalar::Bytes { min: 64, max: 64 * 1024 * 1024 }),
            "64KiB",
            "The maximum size of a request body.",
        ),
        Field::new(
            "checks",
            Kind::Scalar(Scalar::Count { min: 1, max: 32 }),
            "32",
            "The maximum number of checks in a request.",
        ),
        Field::new(
            "connections",
            Kind::Scalar(Scalar::Count { min: 1, max: 1_000_000 }),
            "10000",
            "The maximum number of open connections.",
        ),
        Field::new(
            "header_timeout",
            Kind::Scalar(Scalar::Duration { min: MILLISECOND }),
            "10s",
            "The timeout for receiving the head of a request, and the timeout for receiving its \
             body.",
        ),
        Field::new(
            "idle",
            Kind::Scalar(Scalar::Duration { min: MILLISECOND }),
            "5min",
            "The time after which an idle connection is closed.",
        ),
        Field::new(
            "pipeline",
            Kind::Scalar(Scalar::Count { min: 1, max: 1_000_000 }),
            "16384",
            "The maximum number of commands that a Redis client may queue in a transaction, and of \
             pipelined commands that are decided before the daemon replies.",
        ),
        Field::new(
            "connection_age",
            Kind::Scalar(Scalar::Duration { min: Duration::from_secs(1) }),
            "30min",
            "The age at which a gRPC connection is closed gracefully, so that clients spread over \
             all daemons. Each connection gets a random age, up to a tenth less.",
        ),
    ],
    later: &[],
};
