//! `policies`: limits by name.

use super::store::FILE;
use super::{Field, Kind, Scalar, Section, form};

const LIMITS: Kind = Kind::Many(Scalar::Form(&form::LIMIT));
static LIMITS_OR_NONE: Kind = Kind::ManyOr(Scalar::Form(&form::LIMIT), "unlimited");
const KEYS: Kind = Kind::Many(Scalar::Form(&form::KEY));

pub(super) static POLICY: Section = Section {
    fields: &[
        Field::new(
            "limits",
            LIMITS,
            "",
            "All of them hold, and are charged together or not at all.",
        )
        .required("a policy needs a limit, such as \"10/s\""),
        Field::new(
            "mode",
            Kind::One(Scalar::Word { words: &["exact"], later: &["leased"] }),
            "exact",
            "How it is decided: `exact` asks the store each time.",
        ),
        Field::new(
            "on_store_error",
            Kind::One(Scalar::Word { words: &["deny", "allow"], later: &["local"] }),
            "deny",
            "What is answered while the store does not answer.",
        ),
        Field::new(
            "shadow",
            Kind::One(Scalar::Truth),
            "false",
            "Whether it decides and records, but never denies.",
        ),
        Field::new(
            "max_keys",
            Kind::One(Scalar::Count { least: 1, most: u64::MAX }),
            "null",
            "The most keys of this policy in memory, in a table of its own.",
        ),
        Field::new(
            "overrides",
            Kind::Named(Scalar::Form(&form::OVERRIDDEN), &LIMITS_OR_NONE),
            "{}",
            "Other limits, or `unlimited`, for some keys: an exact key, the beginning of keys and a \
             star, or a network where keys are addresses.",
        ),
        Field::new(
            "overrides_file",
            FILE,
            "null",
            "A file of more overrides, as CSV or JSON lines, up to 1,000,000 rows; read again when \
             it changes.",
        ),
        Field::new(
            "tiers",
            Kind::Named(Scalar::Form(&form::TIER), &LIMITS_OR_NONE),
            "{}",
            "Other limits, or `unlimited`, that a check or a rule chooses by its `tier`.",
        ),
        Field::new(
            "allow",
            KEYS,
            "[]",
            "Keys that are always admitted: exact, or their beginning and a star.",
        ),
        Field::new(
            "deny",
            KEYS,
            "[]",
            "Keys that are always denied: exact, or their beginning and a star.",
        ),
    ],
    later: &["track"],
};
