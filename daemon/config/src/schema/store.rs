//! `store`: the store for the state of limits.

use std::time::Duration;

use super::{Field, Kind, Scalar, Section, format};

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) static STORE: Section = Section {
    fields: &[
        Field::new(
            "url",
            Kind::Scalar(Scalar::Format(&format::STORE_URL)),
            "memory",
            "`memory`, `redis://HOST`, `redis+cluster://HOST,HOST`, \
             `redis+sentinel://HOST,HOST/MASTER` or `redis+unix:///PATH`. `rediss` uses TLS; \
             `valkey` works like `redis`.",
        )
        .needs_restart(),
        Field::new(
            "data",
            Kind::Scalar(Scalar::Path { what: "a directory" }),
            "null",
            "The snapshot directory, so that in-memory state survives a restart. Memory store \
             only.",
        )
        .needs_restart(),
        Field::new(
            "snapshot_interval",
            Kind::Scalar(Scalar::Duration { min: Duration::from_millis(100) }),
            "5s",
            "The interval between snapshots, and so the most that a crash can lose. Memory store \
             only.",
        )
        .needs_restart(),
        Field::new(
            "max_keys",
            Kind::Scalar(Scalar::Count { min: 1, max: u64::MAX }),
            "1000000",
            "The maximum number of keys. Memory store only.",
        )
        .needs_restart(),
        Field::new(
            "table_full",
            Kind::Scalar(Scalar::keywords(&["deny", "allow"])),
            "deny",
            "The decision for a new key while the table is full of keys that are still in use. \
             Memory store only.",
        )
        .needs_restart(),
        Field::new(
            "connections",
            Kind::Scalar(Scalar::Count { min: 1, max: 64 }),
            "2",
            "The number of connections to each Redis server. This field and all that follow apply \
             to Redis stores only.",
        )
        .needs_restart(),
        Field::new(
            "deadline",
            Kind::Scalar(Scalar::Duration { min: MILLISECOND }),
            "15ms",
            "The deadline of a decision, after which the policy's `on_store_error` applies.",
        )
        .needs_restart(),
        Field::new(
            "connect_timeout",
            Kind::Scalar(Scalar::Duration { min: MILLISECOND }),
            "1s",
            "The timeout for establishing a connection.",
        )
        .needs_restart(),
        Field::new("ca", FILE, "null", "The CA bundle for TLS. The default is the system's.")
            .needs_restart(),
        Field::new("cert", FILE, "null", "The client certificate for TLS; requires `key`.")
            .needs_restart(),
        Field::new("key", FILE, "null", "The private key of `cert`.").needs_restart(),
        Field::new(
            "username",
            Kind::Scalar(Scalar::Text),
            "null",
            "The user name, instead of the one in the URL.",
        )
        .needs_restart(),
        Field::new(
            "password_file",
            FILE,
            "null",
            "A file that contains the password, instead of the one in the URL.",
        )
        .needs_restart(),
    ],
    later: &[],
};

pub(super) const FILE: Kind = Kind::Scalar(Scalar::Path { what: "the path of a file" });
