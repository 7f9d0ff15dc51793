//! Formats of text values.

use tollgate::{KeyPattern, Limiter, Policy, Tiers};

use tollgate_rules::{HeaderMatcher, HostPattern, MethodName, Networks, PathPattern, Template};

/// A format of text values: its check, and a pattern for editors.
#[derive(Debug)]
pub(crate) struct Format {
    /// The name of the format in the reference.
    pub(crate) name: &'static str,
    /// Checks a text; the error states the remedy.
    pub(crate) check: fn(&str) -> Result<(), String>,
    /// A regular expression that every valid text matches, if there is a useful one.
    pub(crate) pattern: Option<&'static str>,
    pub(crate) example: &'static str,
    /// Whether messages must not show the text, because it may contain a secret.
    pub(crate) hides: bool,
}

pub(super) static NAMESPACE: Format = Format {
    name: "name",
    check: |text| match is_word(text, 64) {
        true => Ok(()),
        false => Err("expected 1 to 64 letters, digits, '_', '-' and '.'".to_owned()),
    },
    pattern: Some("^[A-Za-z0-9_.-]{1,64}$"),
    example: "shop",
    hides: false,
};

pub(super) static STORE_URL: Format = Format {
    name: "URL",
    check: |text| Limiter::check_scheme(text).map_err(|error| error.to_string()),
    pattern: Some("^(memory$|(redis|rediss|valkey|valkeys)([+][a-z]+)?://)"),
    example: "redis://127.0.0.1:6379",
    hides: true,
};

pub(super) static POLICY_NAME: Format = Format {
    name: "name",
    // `Policy::new` and `Policies` report invalid names.
    check: |_| Ok(()),
    pattern: Some("^[A-Za-z][A-Za-z0-9_.-]{0,127}$"),
    example: "api",
    hides: false,
};

pub(super) static LIMIT: Format = Format {
    name: "limit",
    check: |text| {
        let read = text.parse::<Policy>();
        read.map(|_| ())
            .map_err(|notation_error: tollgate::NotationError| notation_error.to_string())
    },
    pattern: None,
    example: "\"10/s burst 20\"",
    hides: false,
};

pub(super) static KEY: Format = Format {
    name: "key",
    check: |text| match text {
        "" | "*" => Err("expected a key, or a prefix followed by *, as in bot-*".to_owned()),
        _ => Ok(()),
    },
    pattern: None,
    example: "\"health-check\"",
    hides: false,
};

pub(super) static OVERRIDDEN: Format = Format {
    name: "key",
    check: |text| KeyPattern::parse(text).map(|_| ()).map_err(|error| error.to_string()),
    pattern: None,
    example: "vip",
    hides: false,
};

pub(super) static TIER: Format = Format {
    name: "name",
    check: |text| Tiers::new().add(text, "unlimited").map_err(|error| error.to_string()),
    pattern: Some("^\\S{1,128}$"),
    example: "pro",
    hides: false,
};

pub(super) static TOKEN_NAME: Format = Format {
    name: "name",
    check: |text| match is_word(text, 64) {
        true => Ok(()),
        false => Err("expected 1 to 64 letters, digits, '_', '-' and '.'".to_owned()),
    },
    pattern: Some("^[A-Za-z0-9_.-]{1,64}$"),
    example: "gateway",
    hides: false,
};

pub(super) static TOKEN: Format = Format {
    name: "token",
    check: |text| match text {
        // The mask in the output of `config print` must not become a guessable token.
        "***" => Err("*** is a mask for a hidden token; write the token itself, or use token_file"
            .to_owned()),
        _ if text.is_empty()
            || text.len() > 1024
            || !text.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Err("expected 1 to 1024 ASCII characters without spaces".to_owned())
        }
        _ => Ok(()),
    },
    pattern: Some("^[!-~]{1,1024}$"),
    example: "\"…\"",
    hides: true,
};

pub(super) static POLICY_PATTERN: Format = Format {
    name: "name of a policy",
    check: |text| {
        let name = text.strip_suffix('*').unwrap_or(text);
        match text == "*" || Policy::is_name(name) {
            true => Ok(()),
            false => Err("expected the name of a policy, a prefix followed by *, as in api-*, or \
                          \"*\" for all policies"
                .to_owned()),
        }
    },
    pattern: Some("^([*]|[A-Za-z][A-Za-z0-9_.-]*[*]?)$"),
    example: "\"*\"",
    hides: false,
};

pub(super) static PROXY: Format = Format {
    name: "network",
    check: |text| Networks::default().add(text),
    pattern: Some("^(unix|[0-9.]+(/[0-9]+)?|[0-9A-Fa-f:.]+(/[0-9]+)?)$"),
    example: "10.0.0.0/8",
    hides: false,
};

pub(super) static HEADER_NAME: Format = Format {
    name: "header",
    check: |text| HeaderMatcher::new(text, "*").map(|_| ()),
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    example: "x-api-key",
    hides: false,
};

pub(super) static HEADER_VALUE: Format = Format {
    name: "value",
    check: |text| HeaderMatcher::new("x", text).map(|_| ()),
    pattern: None,
    example: "pro*",
    hides: false,
};

pub(super) static METHOD: Format = Format {
    name: "method",
    check: |text| MethodName::parse(text).map(|_| ()),
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    example: "GET",
    hides: false,
};

pub(super) static PATH: Format = Format {
    name: "path",
    check: |text| PathPattern::parse(text).map(|_| ()),
    pattern: Some("^/"),
    example: "/api/**",
    hides: false,
};

pub(super) static HOST: Format = Format {
    name: "host",
    check: |text| HostPattern::parse(text).map(|_| ()),
    pattern: None,
    example: "example.com",
    hides: false,
};

pub(super) static TEMPLATE: Format = Format {
    name: "template",
    check: |text| Template::parse(text).map(|_| ()),
    pattern: None,
    example: "\"{ip}\"",
    hides: false,
};

fn is_word(text: &str, max: usize) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=max).contains(&text.len()) && text.bytes().all(inner)
}
