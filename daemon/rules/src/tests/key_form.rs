//! The forms of keys, and the patterns that no key can match.

use tollgate::{KeyPattern, KeyPatternKind};

use super::*;

#[test]
fn forms_name_the_source_of_each_alternative() {
    for (template, forms) in [
        ("{ip}", &["{ip}"][..]),
        ("everyone", &["everyone"]),
        ("user:{jwt.sub}", &["user:{jwt.sub}"]),
        ("{header.x-api-key|ip}", &["header.x-api-key=…", "ip=…"]),
        ("v1/{header.a|ip}/{path}", &["v1/header.a=…/{path}", "v1/ip=…/{path}"]),
    ] {
        assert_eq!(Template::parse(template).unwrap().forms(), forms, "{template}");
    }
}

#[test]
fn patterns_match_only_keys_that_a_request_can_have() {
    let alternatives = "{header.x-api-key|ip}";
    for (template, pattern, can_match) in [
        (alternatives, "vip", false),
        (alternatives, "header.x-api-key=vip", true),
        (alternatives, "header.x-api-key=", false),
        (alternatives, "header.x-api-key=*", true),
        (alternatives, "header.x-api-key=bot-*", true),
        (alternatives, "header.*", true),
        (alternatives, "head", false),
        (alternatives, "i*", true),
        (alternatives, "bot-*", false),
        (alternatives, "10.0.0.1", false),
        (alternatives, "ip=10.0.0.1", true),
        (alternatives, "ip=vip", false),
        (alternatives, "ip=1*", true),
        (alternatives, "ip=v*", false),
        (alternatives, "10.0.0.0/8", true),
        ("{header.a|host}", "10.0.0.0/8", false),
        ("{ip}", "10.0.0.1", true),
        ("{ip}", "10.0.0.0/8", true),
        ("{ip}", "vip", false),
        // The key of an IPv6 client is a network.
        ("{ip}", "2001:db8::1", false),
        ("{ip}", r"2001:db8::\/64", true),
        ("{ip}", "2001:db8::/32", true),
        ("ip={ip}", "10.0.0.0/8", true),
        ("client={ip}", "10.0.0.0/8", false),
        ("{header.a}", "anything at all", true),
        ("{header.a}", "10.0.0.0/8", true),
        ("{method}", "GET", true),
        ("{method}", "get", false),
        ("{host}", "Example.com", false),
        ("{path}", "/login", true),
        ("{path}", "login", false),
        ("user:{jwt.sub}", "user:42", true),
        ("user:{jwt.sub}", "user:*", true),
        ("user:{jwt.sub}", "us*", true),
        ("user:{jwt.sub}", "42", false),
        ("{header.a}!", "x!", true),
        ("{header.a}!", "x", false),
        ("{header.a}!", "x*", true),
        ("{method}:{path}", "GET:/login", true),
        ("{method}:{path}", "GET:login", false),
        ("{method}:{path}", "GET", false),
        ("{header.a}:{header.b}", "x%3Ay:z", true),
        ("{header.a}:{header.b}", "x:y:z", false),
        ("{header.a}:{header.b}", "x%2Ay:z", false),
        ("{header.a}:{header.b}", "x%3ay:z", false),
        ("everyone", "everyone", true),
        ("everyone", "every*", true),
        ("everyone", "vip", false),
        ("everyone", "10.0.0.0/8", false),
        ("10.0.0.1", "10.0.0.0/8", true),
    ] {
        let pattern = KeyPattern::parse(pattern).unwrap();
        let found = Template::parse(template).unwrap();
        let found = found.can_match(pattern.kind(), Ipv6Prefix::default());
        assert_eq!(found, can_match, "{template} {pattern}");
    }
}

/// Every key of a template matches itself and each of its prefixes.
#[test]
fn keys_of_requests_match() {
    let headers = headers(&["a: x:%/", "b: 2001:db8::", "authorization: -"]);
    for template in [
        "{ip}",
        "{header.a}",
        "{header.a|ip}",
        "{header.none|ip}",
        "{header.a}:{header.b}",
        "v1/{header.a|ip}/{path}",
        "{method} {host} {path.1|ip}",
        "everyone",
    ] {
        let template = Template::parse(template).unwrap();
        let path = Path::decoded(b"/a/%25");
        let key = template.key(&facts("/a/%25", &headers), &path, 256).unwrap();
        for end in 1..=key.len() {
            let kind = KeyPatternKind::Prefix(&key[..end]);
            assert!(template.can_match(kind, Ipv6Prefix::default()), "{template} {end}");
        }
        let kind = KeyPatternKind::Exact(&key);
        assert!(template.can_match(kind, Ipv6Prefix::default()), "{template}");
    }
}

#[test]
fn messages_name_the_rules_and_suggest_the_key() {
    let check = |policy: &str, key: &str| RuleCheck::new(policy, Template::parse(key).unwrap());
    let rule = |checks: Vec<RuleCheck>| Rule { checks, ..Rule::default() };
    let rules = vec![
        rule(vec![check("api", "{header.x-api-key|ip}"), check("address", "{ip}")]),
        rule(vec![check("api", "{header.x-api-key|ip}")]),
        rule(vec![check("other", "user:{jwt.sub}")]),
    ];
    let rules = Rules { rules, ..Rules::default() };
    let forms = |policy| rules.key_forms(policy, Ipv6Prefix::default());
    assert!(forms("unused").is_none());
    let api = forms("api").unwrap();
    assert_eq!(
        api.to_string(),
        r#"keys of rules[0], rules[1] look like "header.x-api-key=…" or "ip=…""#
    );
    assert_eq!(api.suggest("vip").as_deref(), Some("header.x-api-key=vip"));
    assert_eq!(api.suggest("bot-*").as_deref(), Some("header.x-api-key=bot-*"));
    assert_eq!(api.suggest("203.0.113.7").as_deref(), Some("ip=203.0.113.7"));
    let other = forms("other").unwrap();
    assert_eq!(other.to_string(), r#"keys of rules[2] look like "user:{jwt.sub}""#);
    assert_eq!(other.suggest("42"), None);
}
