//! `tokens`: who may do what.

use super::store::FILE;
use super::{Field, Kind, Scalar, Section, form};

pub(super) static TOKEN: Section = Section {
    fields: &[
        Field::new(
            "name",
            Kind::One(Scalar::Form(&form::TOKEN_NAME)),
            "",
            "What it is called in the audit log.",
        )
        .required("a token needs a name, such as gateway"),
        Field::new(
            "token",
            Kind::One(Scalar::Form(&form::TOKEN)),
            "null",
            "The token itself; a file in `token_file` is better.",
        )
        .secret(),
        Field::new(
            "token_file",
            FILE,
            "null",
            "The file that holds the token. It is read again when it changes.",
        ),
        Field::new(
            "scopes",
            Kind::Many(Scalar::words(&["check", "operate", "read", "admin"])),
            "",
            "What it may do: `check` asks and spends, `operate` resets, blocks, refunds and \
             penalizes, `read` looks, `admin` may all.",
        )
        .required("a token needs scopes, such as [check]"),
        Field::new(
            "policies",
            Kind::Many(Scalar::Form(&form::POLICY_PATTERN)),
            "[\"*\"]",
            "The policies it is good for: names, beginnings of names with a star, or `\"*\"`.",
        ),
    ],
    later: &[],
};
