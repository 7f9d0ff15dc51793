//! How the daemon shows itself, what it holds peers to, and how it stops.

use std::time::Duration;

use super::store::MILLISECOND;
use super::{Field, Kind, Scalar, Section};

pub(super) const HEADERS: Field = Field::new(
    "headers",
    Kind::Many(Scalar::words(&["draft11", "legacy-delta", "legacy-epoch", "draft6", "none"])),
    "[draft11]",
    "The headers that tell a client its limits, in one or more styles: `draft11` is \
     `RateLimit-Policy` and `RateLimit`, `draft6` is `RateLimit-Limit` and its kin, `legacy-delta` \
     and `legacy-epoch` are `X-RateLimit-…` with the reset in seconds or as a time; `none` stands \
     alone.",
);

pub(super) const PRIVACY: Field = Field::new(
    "privacy",
    Kind::One(Scalar::words(&["plain", "masked", "hashed"])),
    "plain",
    "How keys show in logs and in the audit.",
);

pub(super) static LOG: Section = Section {
    fields: &[
        Field::new(
            "level",
            Kind::One(Scalar::words(&["error", "warn", "info", "debug", "trace"])),
            "info",
            "The least that is logged.",
        ),
        Field::new(
            "format",
            Kind::One(Scalar::words(&["text", "json"])),
            "text",
            "Lines for people, or an object a line.",
        )
        .needs_restart(),
    ],
    later: &[],
};

pub(super) static DRAIN: Section = Section {
    fields: &[
        Field::new(
            "delay",
            Kind::One(Scalar::Duration { least: Duration::ZERO }),
            "5s",
            "How long a daemon that is told to stop says so at `/readyz` and still accepts, so \
             that whoever sends to it learns of it.",
        )
        .needs_restart(),
        Field::new(
            "timeout",
            Kind::One(Scalar::Duration { least: MILLISECOND }),
            "20s",
            "How long requests under way have after that.",
        )
        .needs_restart(),
    ],
    later: &[],
};

pub(super) static LIMITS: Section = Section {
    fields: &[
        Field::new(
            "key_bytes",
            Kind::One(Scalar::Bytes { least: 1, most: 65_536 }),
            "65536",
            "The most bytes of a key.",
        ),
        Field::new(
            "body",
            Kind::One(Scalar::Bytes { least: 64, most: 64 * 1024 * 1024 }),
            "64KiB",
            "The most bytes of a body.",
        ),
        Field::new(
            "checks",
            Kind::One(Scalar::Count { least: 1, most: 32 }),
            "32",
            "The most checks of a request.",
        ),
        Field::new(
            "connections",
            Kind::One(Scalar::Count { least: 1, most: 1_000_000 }),
            "10000",
            "The most connections at a time.",
        ),
        Field::new(
            "header_timeout",
            Kind::One(Scalar::Duration { least: MILLISECOND }),
            "10s",
            "How long the head of a request may take, and how long its body.",
        ),
        Field::new(
            "idle",
            Kind::One(Scalar::Duration { least: MILLISECOND }),
            "5min",
            "How long a connection may be without a request.",
        ),
        Field::new(
            "pipeline",
            Kind::One(Scalar::Count { least: 1, most: 1_000_000 }),
            "16384",
            "The most commands that a client of Redis may queue in a transaction, and the most that \
             are decided before what was decided is answered.",
        ),
        Field::new(
            "connection_age",
            Kind::One(Scalar::Duration { least: Duration::from_secs(1) }),
            "30min",
            "How long a connection of gRPC lives before its peer is asked to make another, so that \
             peers spread over the daemons there are; each lives up to a tenth less.",
        ),
    ],
    later: &[],
};
