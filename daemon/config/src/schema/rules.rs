//! `rules`, and what goes with them: which policies limit a request that a gateway asks about.

use std::time::Duration;

use super::store::FILE;
use super::{Field, Kind, Scalar, Section, form};

pub(super) const RULES: Field = Field::new(
    "rules",
    Kind::Sections(&RULE),
    "[]",
    "What forward-auth decides by. The first that matches holds; all its checks are decided \
     together. A rule has `checks`, or the fields of one check itself.",
);

pub(super) const DEFAULT: Field = Field::new(
    "default",
    Kind::One(Scalar::words(&["pass", "deny"])),
    "pass",
    "What becomes of a request that no rule matches.",
);

pub(super) const TRUSTED_PROXIES: Field = Field::new(
    "trusted_proxies",
    Kind::Many(Scalar::Form(&form::PROXY)),
    "[]",
    "Whose word on a client's address is taken: networks, addresses, and `unix` for whoever comes \
     through a unix socket.",
);

pub(super) const IPV6_PREFIX: Field = Field::new(
    "ipv6_prefix",
    Kind::One(Scalar::Count { least: 32, most: 128 }),
    "64",
    "How many bits of an IPv6 address `{ip}` keeps: a network of that size is one client.",
);

pub(super) static JWT: Section = Section {
    fields: &[
        Field::new("jwks_file", FILE, "null", "The keys that sign tokens, as a JSON Web Key Set."),
        Field::new(
            "verify",
            Kind::One(Scalar::Truth),
            "true",
            "Whether signature and times are looked at. Without, anyone can claim anything: only \
             where the gateway has verified the token before.",
        ),
        Field::new("issuer", Kind::One(Scalar::Text), "null", "What `iss` must be, if anything."),
        Field::new(
            "audience",
            Kind::One(Scalar::Text),
            "null",
            "What `aud` must hold, if anything.",
        ),
        Field::new(
            "header",
            Kind::One(Scalar::Form(&form::HEADER_NAME)),
            "authorization",
            "The header that brings the token, with or without `Bearer`.",
        ),
        Field::new(
            "leeway",
            Kind::One(Scalar::Duration { least: Duration::ZERO }),
            "1min",
            "How far its issuer's clock may be off.",
        ),
    ],
    later: &[],
};

const POLICY: Field =
    Field::new("policy", Kind::One(Scalar::Text), "null", "The name of the policy.");
const KEY: Field = Field::new(
    "key",
    Kind::One(Scalar::Form(&form::TEMPLATE)),
    "null",
    "What is limited: text with `{ip}`, `{host}`, `{method}`, `{path}`, `{path.N}`, `{query.NAME}`, \
     `{header.NAME}`, `{cookie.NAME}` or `{jwt.CLAIM}` in it, and a bar between two for the first \
     that has a value.",
);
const TIER: Field = Field::new(
    "tier",
    Kind::One(Scalar::Form(&form::TEMPLATE)),
    "null",
    "The tier of the policy, as a text like `key`; without a value it is the usual one.",
);
const COST: Field = Field::new(
    "cost",
    Kind::One(Scalar::Count { least: 0, most: tollgate::Cost::MAX.get() }),
    "1",
    "What a request spends.",
);
const ON_MISSING: Field = Field::new(
    "on_missing",
    Kind::One(Scalar::words(&["skip", "deny", "error"])),
    "deny",
    "What becomes of the check where its key has no value: it is left out, it denies, or the \
     answer is an error. That is no decision: a gateway that fails open lets pass whoever leaves \
     the value out.",
);

static RULE: Section = Section {
    fields: &[
        Field::section("match", &MATCH, "What a request must be; all that is said must hold."),
        Field::new("checks", Kind::Sections(&CHECK), "[]", "The checks that are decided together."),
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
            Kind::OneOrMany(Scalar::Form(&form::PATH)),
            "[]",
            "One of these paths, decoded once and without dot segments: `*` is one segment, `**` \
             any number.",
        ),
        Field::new(
            "method",
            Kind::OneOrMany(Scalar::Form(&form::METHOD)),
            "[]",
            "One of these methods; `GET` is `HEAD` too.",
        ),
        Field::new(
            "host",
            Kind::OneOrMany(Scalar::Form(&form::HOST)),
            "[]",
            "One of these hosts, without a port; `*.` before one is all that are below it.",
        ),
        Field::new(
            "headers",
            Kind::Named(
                Scalar::Form(&form::HEADER_NAME),
                &Kind::One(Scalar::Form(&form::HEADER_VALUE)),
            ),
            "{}",
            "Headers by name, and what each must be: a value, the beginning of one and a star, or a \
             star if it is enough that the header is there. All must hold.",
        ),
    ],
    later: &[],
};
