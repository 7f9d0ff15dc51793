//! `rules`, `default`, `trusted_proxies`, `ipv6_prefix` and `jwt`.

use std::time::Duration;

use super::store::FILE;
use super::{Field, Kind, Scalar, Section, format};

pub(super) const RULES: Field = Field::new(
    "rules",
    Kind::Sections(&RULE),
    "[]",
    "The rules for forward auth. The first rule that matches applies, and its checks are decided \
     together. A rule has either `checks` or the fields of a single check.",
);

pub(super) const DEFAULT: Field = Field::new(
    "default",
    Kind::Scalar(Scalar::keywords(&["pass", "deny"])),
    "pass",
    "What happens to a request that no rule matches.",
);

pub(super) const TRUSTED_PROXIES: Field = Field::new(
    "trusted_proxies",
    Kind::List(Scalar::Format(&format::PROXY)),
    "[]",
    "The proxies that are trusted to report the client's address: networks, addresses, and `unix` \
     for peers on a Unix socket.",
);

pub(super) const IPV6_PREFIX: Field = Field::new(
    "ipv6_prefix",
    Kind::Scalar(Scalar::Count { min: 32, max: 128 }),
    "64",
    "The length of the IPv6 prefix that `{ip}` stands for: all addresses of such a network count \
     as one client.",
);

pub(super) static JWT: Section = Section {
    fields: &[
        Field::new(
            "jwks_file",
            FILE,
            "null",
            "The public keys of the token issuer, as a JSON Web \
                                               Key Set.",
        ),
        Field::new(
            "verify",
            Kind::Scalar(Scalar::Bool),
            "true",
            "Whether signatures and times are verified. Set it to `false` only if the gateway has \
             verified the token; otherwise any client can claim anything.",
        ),
        Field::new(
            "issuer",
            Kind::Scalar(Scalar::Text),
            "null",
            "The required value of `iss`, if \
                                                                  any.",
        ),
        Field::new(
            "audience",
            Kind::Scalar(Scalar::Text),
            "null",
            "The value that `aud` must contain, if any.",
        ),
        Field::new(
            "header",
            Kind::Scalar(Scalar::Format(&format::HEADER_NAME)),
            "authorization",
            "The header that carries the token, with or without `Bearer`.",
        ),
        Field::new(
            "leeway",
            Kind::Scalar(Scalar::Duration { min: Duration::ZERO }),
            "1min",
            "The tolerated difference between the issuer's clock and the daemon's.",
        ),
    ],
    later: &[],
};

const POLICY: Field =
    Field::new("policy", Kind::Scalar(Scalar::Text), "null", "The name of the policy.");
const KEY: Field = Field::new(
    "key",
    Kind::Scalar(Scalar::Format(&format::TEMPLATE)),
    "null",
    "The key template: text with the placeholders `{ip}`, `{host}`, `{method}`, `{path}`, \
     `{path.N}`, `{query.NAME}`, `{header.NAME}`, `{cookie.NAME}` and `{jwt.CLAIM}`. A bar \
     separates alternatives, of which the first with a value is used, as in `{jwt.sub|ip}`.",
);
const TIER: Field = Field::new(
    "tier",
    Kind::Scalar(Scalar::Format(&format::TEMPLATE)),
    "null",
    "The tier of the policy, as a template like `key`. Without a value the policy's own limits \
     apply.",
);
const COST: Field = Field::new(
    "cost",
    Kind::Scalar(Scalar::Count { min: 0, max: tollgate::Cost::MAX.get() }),
    "1",
    "The cost of a request.",
);
const ON_MISSING: Field = Field::new(
    "on_missing",
    Kind::Scalar(Scalar::keywords(&["skip", "deny", "error"])),
    "deny",
    "What happens if the key has no value: the check is skipped, the request is denied, or the \
     response is an error. With `error`, a fail-open gateway admits any client that omits the \
     value.",
);

static RULE: Section = Section {
    fields: &[
        Field::section("match", &MATCH, "The conditions on a request. All of them must be met."),
        Field::new("checks", Kind::Sections(&CHECK), "[]", "The checks, decided together."),
        POLICY,
        KEY,
        TIER,
        COST,
        ON_MISSING,
    ],
    later: &[],
};

static CHECK: Section = Section { fields: &[POLICY, KEY, TIER, COST, ON_MISSING], later: &[] };

static MATCH: Section = Section {
    fields: &[
        Field::new(
            "path",
            Kind::ScalarOrList(Scalar::Format(&format::PATH)),
            "[]",
            "Path patterns, one of which must match the normalized path: `*` matches one segment, \
             `**` any number of segments.",
        ),
        Field::new(
            "method",
            Kind::ScalarOrList(Scalar::Format(&format::METHOD)),
            "[]",
            "Methods, one of which must match. `GET` also matches `HEAD`.",
        ),
        Field::new(
            "host",
            Kind::ScalarOrList(Scalar::Format(&format::HOST)),
            "[]",
            "Hosts without port, one of which must match. A leading `*.` matches all subdomains.",
        ),
        Field::new(
            "headers",
            Kind::Map(
                Scalar::Format(&format::HEADER_NAME),
                &Kind::Scalar(Scalar::Format(&format::HEADER_VALUE)),
            ),
            "{}",
            "Header names, each with the required value: an exact value, a prefix followed by `*`, \
             or `*` for any value. All must match.",
        ),
    ],
    later: &[],
};
