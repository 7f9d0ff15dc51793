//! `policies`: limits by name.

use super::store::FILE;
use super::{Field, Kind, Scalar, Section, format};

const LIMITS: Kind = Kind::List(Scalar::Format(&format::LIMIT));
static LIMITS_OR_NONE: Kind = Kind::ListOr(Scalar::Format(&format::LIMIT), "unlimited");
const KEYS: Kind = Kind::List(Scalar::Format(&format::KEY));

pub(super) static POLICY: Section = Section {
    fields: &[
        Field::new(
            "limits",
            LIMITS,
            "",
            "The limits. All of them apply, and a request is charged to all of them or to none.",
        )
        .required("a policy needs a limit, such as \"10/s\""),
        Field::new(
            "mode",
            Kind::Scalar(Scalar::Keyword { words: &["exact"], later: &["leased"] }),
            "exact",
            "How requests are decided: `exact` queries the store for each one.",
        ),
        Field::new(
            "on_store_error",
            Kind::Scalar(Scalar::Keyword { words: &["deny", "allow"], later: &["local"] }),
            "deny",
            "The decision while the store is unavailable.",
        ),
        Field::new(
            "shadow",
            Kind::Scalar(Scalar::Bool),
            "false",
            "Whether decisions are made and recorded but never enforced.",
        ),
        Field::new(
            "max_keys",
            Kind::Scalar(Scalar::Count { min: 1, max: u64::MAX }),
            "null",
            "The maximum number of keys of this policy, in a table of its own. Memory store only.",
        ),
        Field::new(
            "overrides",
            Kind::Map(Scalar::Format(&format::OVERRIDDEN), &LIMITS_OR_NONE),
            "{}",
            "Other limits, or `unlimited`, for some keys: an exact key, a prefix followed by `*`, \
             or a network for keys that are IP addresses.",
        ),
        Field::new(
            "overrides_file",
            FILE,
            "null",
            "A file with more overrides, as CSV or JSON Lines, up to 1,000,000 rows. It is \
             reloaded when it changes.",
        ),
        Field::new(
            "tiers",
            Kind::Map(Scalar::Format(&format::TIER), &LIMITS_OR_NONE),
            "{}",
            "Other limits, or `unlimited`, that a check or a rule selects with `tier`.",
        ),
        Field::new(
            "allow",
            KEYS,
            "[]",
            "Keys that are always admitted: exact keys, or prefixes followed by `*`.",
        ),
        Field::new(
            "deny",
            KEYS,
            "[]",
            "Keys that are always denied: exact keys, or prefixes followed by `*`.",
        ),
    ],
    later: &["track"],
};
