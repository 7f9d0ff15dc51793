//! `tokens`: access tokens.

use super::store::FILE;
use super::{Field, Kind, Scalar, Section, format};

pub(super) static TOKEN: Section = Section {
    fields: &[
        Field::new(
            "name",
            Kind::Scalar(Scalar::Format(&format::TOKEN_NAME)),
            "",
            "The name of the token in the audit log.",
        )
        .required("a token needs a name, such as gateway"),
        Field::new(
            "token",
            Kind::Scalar(Scalar::Format(&format::TOKEN)),
            "null",
            "The token. Prefer `token_file`.",
        )
        .secret(),
        Field::new(
            "token_file",
            FILE,
            "null",
            "A file that contains the token. It is reloaded when it changes.",
        ),
        Field::new(
            "scopes",
            Kind::List(Scalar::keywords(&["check", "operate", "read", "admin"])),
            "",
            "What the token permits: `check` to make decisions, `operate` to reset, block, refund \
             and penalize, `read` to read state, `admin` everything.",
        )
        .required("a token needs scopes, such as [check]"),
        Field::new(
            "policies",
            Kind::List(Scalar::Format(&format::POLICY_PATTERN)),
            "[\"*\"]",
            "The policies that the token permits access to: names, prefixes followed by `*`, or \
             `\"*\"`.",
        ),
    ],
    later: &[],
};
