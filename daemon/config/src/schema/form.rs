//! Texts with a form of their own.

use tollgate::{KeyPattern, Limiter, Policy, Tiers};

use tollgate_rules::{HeaderMatcher, HostPattern, MethodName, Networks, PathPattern, Template};

/// A form of text: what reads it, and how an editor knows it.
#[derive(Debug)]
pub(crate) struct Form {
    /// What is so written, for the reference.
    pub(crate) name: &'static str,
    /// Says what to write instead.
    pub(crate) check: fn(&str) -> Result<(), String>,
    /// A regular expression that everything of this form matches; none where that says too little.
    pub(crate) pattern: Option<&'static str>,
    pub(crate) example: &'static str,
    /// Whether a refused text may not be shown, for the secret that it may hold.
    pub(crate) hides: bool,
}

pub(super) static NAMESPACE: Form = Form {
    name: "name",
    check: |text| match is_word(text, 64) {
        true => Ok(()),
        false => Err("write 1 to 64 letters, digits, '_', '-' and '.'".to_owned()),
    },
    pattern: Some("^[A-Za-z0-9_.-]{1,64}$"),
    example: "shop",
    hides: false,
};

pub(super) static STORE_URL: Form = Form {
    name: "URL",
    check: |text| Limiter::check_scheme(text).map_err(|error| error.to_string()),
    pattern: Some("^(memory$|(redis|rediss|valkey|valkeys)([+][a-z]+)?://)"),
    example: "redis://127.0.0.1:6379",
    hides: true,
};

pub(super) static POLICY_NAME: Form = Form {
    name: "name",
    // `Policy::new` says what is wrong with one, and where it is looked up so does `Policies`.
    check: |_| Ok(()),
    pattern: Some("^[A-Za-z][A-Za-z0-9_.-]{0,127}$"),
    example: "api",
    hides: false,
};

pub(super) static LIMIT: Form = Form {
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

pub(super) static KEY: Form = Form {
    name: "key",
    check: |text| match text {
        "" | "*" => Err("write a key, or the beginning of keys and a star, as in bot-*".to_owned()),
        _ => Ok(()),
    },
    pattern: None,
    example: "\"health-check\"",
    hides: false,
};

pub(super) static OVERRIDDEN: Form = Form {
    name: "key",
    check: |text| KeyPattern::parse(text).map(|_| ()).map_err(|error| error.to_string()),
    pattern: None,
    example: "vip",
    hides: false,
};

pub(super) static TIER: Form = Form {
    name: "name",
    check: |text| Tiers::new().add(text, "unlimited").map_err(|error| error.to_string()),
    pattern: Some("^\\S{1,128}$"),
    example: "pro",
    hides: false,
};

pub(super) static TOKEN_NAME: Form = Form {
    name: "name",
    check: |text| match is_word(text, 64) {
        true => Ok(()),
        false => Err("write 1 to 64 letters, digits, '_', '-' and '.'".to_owned()),
    },
    pattern: Some("^[A-Za-z0-9_.-]{1,64}$"),
    example: "gateway",
    hides: false,
};

pub(super) static TOKEN: Form = Form {
    name: "token",
    check: |text| match text {
        // What `config print` shows must not become a token that somebody could guess.
        "***" => Err("this stands for a token that is not shown; write the token itself, or its \
                      file in token_file"
            .to_owned()),
        _ if text.is_empty()
            || text.len() > 1024
            || !text.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Err("write 1 to 1024 characters of ASCII without spaces".to_owned())
        }
        _ => Ok(()),
    },
    pattern: Some("^[!-~]{1,1024}$"),
    example: "\"…\"",
    hides: true,
};

pub(super) static POLICY_PATTERN: Form = Form {
    name: "name of a policy",
    check: |text| {
        let name = text.strip_suffix('*').unwrap_or(text);
        match text == "*" || Policy::is_name(name) {
            true => Ok(()),
            false => Err("write a policy's name, the beginning of names and a star, as in api-*, \
                          or \"*\" for all"
                .to_owned()),
        }
    },
    pattern: Some("^([*]|[A-Za-z][A-Za-z0-9_.-]*[*]?)$"),
    example: "\"*\"",
    hides: false,
};

pub(super) static PROXY: Form = Form {
    name: "network",
    check: |text| Networks::default().add(text),
    pattern: Some("^(unix|[0-9.]+(/[0-9]+)?|[0-9A-Fa-f:.]+(/[0-9]+)?)$"),
    example: "10.0.0.0/8",
    hides: false,
};

pub(super) static HEADER_NAME: Form = Form {
    name: "header",
    check: |text| HeaderMatcher::new(text, "*").map(|_| ()),
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    example: "x-api-key",
    hides: false,
};

pub(super) static HEADER_VALUE: Form = Form {
    name: "value",
    check: |text| HeaderMatcher::new("x", text).map(|_| ()),
    pattern: None,
    example: "pro*",
    hides: false,
};

pub(super) static METHOD: Form = Form {
    name: "method",
    check: |text| MethodName::parse(text).map(|_| ()),
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    example: "GET",
    hides: false,
};

pub(super) static PATH: Form = Form {
    name: "path",
    check: |text| PathPattern::parse(text).map(|_| ()),
    pattern: Some("^/"),
    example: "/api/**",
    hides: false,
};

pub(super) static HOST: Form = Form {
    name: "host",
    check: |text| HostPattern::parse(text).map(|_| ()),
    pattern: None,
    example: "example.com",
    hides: false,
};

pub(super) static TEMPLATE: Form = Form {
    name: "template",
    check: |text| Template::parse(text).map(|_| ()),
    pattern: None,
    example: "\"{ip}\"",
    hides: false,
};

fn is_word(text: &str, most: usize) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=most).contains(&text.len()) && text.bytes().all(inner)
}
