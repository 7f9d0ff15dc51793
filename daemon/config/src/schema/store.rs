//! `store`: where state lives.

use std::time::Duration;

use super::{Field, Kind, Scalar, Section, form};

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) static STORE: Section = Section {
    fields: &[
        Field::new(
            "url",
            Kind::One(Scalar::Form(&form::STORE_URL)),
            "memory",
            "`memory`, `redis://HOST`, `redis+cluster://HOST,HOST`, \
             `redis+sentinel://HOST,HOST/MASTER` or `redis+unix:///PATH`; `rediss` for TLS, and \
             `valkey` wherever `redis` stands.",
        )
        .needs_restart(),
        Field::new(
            "data",
            Kind::One(Scalar::Path { what: "a directory" }),
            "null",
            "The directory that memory is kept in over a restart. Of memory only.",
        )
        .needs_restart(),
        Field::new(
            "snapshot_interval",
            Kind::One(Scalar::Duration { least: Duration::from_millis(100) }),
            "5s",
            "How often memory is written there: what a crash forgets at most. Of memory only.",
        )
        .needs_restart(),
        Field::new(
            "max_keys",
            Kind::One(Scalar::Count { least: 1, most: u64::MAX }),
            "1000000",
            "The most keys in memory. Of memory only.",
        )
        .needs_restart(),
        Field::new(
            "table_full",
            Kind::One(Scalar::words(&["deny", "allow"])),
            "deny",
            "What a new key is told when so many keys have something left to recover. Of memory \
             only.",
        )
        .needs_restart(),
        Field::new(
            "connections",
            Kind::One(Scalar::Count { least: 1, most: 64 }),
            "2",
            "How many connections there are to each Redis. Of Redis only, as are all that follow.",
        )
        .needs_restart(),
        Field::new(
            "deadline",
            Kind::One(Scalar::Duration { least: MILLISECOND }),
            "15ms",
            "How long a decision may take; then `on_store_error` of its policy answers.",
        )
        .needs_restart(),
        Field::new(
            "connect_timeout",
            Kind::One(Scalar::Duration { least: MILLISECOND }),
            "1s",
            "How long a connection may take to be made.",
        )
        .needs_restart(),
        Field::new("ca", FILE, "null", "The certificates to trust with TLS; the system's if null.")
            .needs_restart(),
        Field::new("cert", FILE, "null", "The certificate to show with TLS; `key` goes with it.")
            .needs_restart(),
        Field::new("key", FILE, "null", "The private key of `cert`.").needs_restart(),
        Field::new(
            "username",
            Kind::One(Scalar::Text),
            "null",
            "Who logs in, in place of the URL's user.",
        )
        .needs_restart(),
        Field::new(
            "password_file",
            FILE,
            "null",
            "The file that holds the password, in place of the URL's.",
        )
        .needs_restart(),
    ],
    later: &[],
};

pub(super) const FILE: Kind = Kind::One(Scalar::Path { what: "the path of a file" });
