//! Templates and their keys.

use proptest::prelude::*;

use super::*;

fn key(template: &str, target: &str, lines: &[&str]) -> String {
    let headers = headers(lines);
    let path = Path::decoded(target.as_bytes());
    match Template::parse(template).unwrap().key(&facts(target, &headers), &path, 64) {
        Ok(key) => String::from_utf8_lossy(&key).into_owned(),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn placeholders_yield_request_attributes() {
    let lines = &[
        "x-api-key: a b",
        "cookie: a=1; sid=%61b%3B; sid2=\"q\";b",
        "cookie: late=\"2\"",
        "x-empty: ",
        "x-latin: \u{fc}",
    ];
    for (template, target, expected) in [
        ("{ip}", "/", "203.0.113.7"),
        ("{host}", "/", "example.com"),
        ("{method}", "/", "GET"),
        ("{path}", "//a/./b/?x", "/a/b"),
        ("{path.1}", "/%61/b", "a"),
        ("{path.2}", "/a/b", "b"),
        ("{path.3}", "/a/b", "! the request has no path.3"),
        ("{header.X-Api-Key}", "/", "a b"),
        ("{header.x-empty}", "/", "! the request has no header.x-empty"),
        ("{header.x-latin}", "/", "\u{fc}"),
        ("{header.x_api_key}", "/", "! the request has no header.x_api_key"),
        ("{query.k}", "/?a=1&k=v%2B+w#k=x", "v+ w"),
        ("{query.k}", "/?k=", "! the request has no query.k"),
        ("{query.k}", "/?k", "! the request has no query.k"),
        ("{query.k}", "/#?k=1", "! the request has no query.k"),
        ("{query.K}", "/?k=1", "! the request has no query.K"),
        ("{cookie.sid}", "/", "ab;"),
        ("{cookie.sid2}", "/", "q"),
        ("{cookie.late}", "/", "2"),
        ("{cookie.b}", "/", "! the request has no cookie.b"),
        ("{jwt.sub}", "/", "! the request has no jwt.sub"),
        ("everyone", "/", "everyone"),
        ("100%", "/", "100%"),
    ] {
        assert_eq!(key(template, target, lines), expected, "{template}");
    }
}

#[test]
fn alternatives_cannot_pose_as_each_other() {
    for (template, lines, expected) in [
        ("{header.x-api-key|ip}", &["x-api-key: k"][..], "header.x-api-key=k"),
        ("{header.x-api-key|ip}", &[], "ip=203.0.113.7"),
        ("{header.x-api-key|ip}", &["x-api-key: "], "ip=203.0.113.7"),
        ("{header.x-api-key|ip}", &["x-api-key: 203.0.113.7"], "header.x-api-key=203.0.113.7"),
        (
            "{header.x-api-key|ip}",
            &["x-api-key: ip=203.0.113.7"],
            "header.x-api-key=ip=203.0.113.7",
        ),
        ("{ header.a | cookie.b }", &["cookie: b=1"], "cookie.b=1"),
        ("{header.a|cookie.b}", &[], "! the request has no header.a|cookie.b"),
        ("user:{header.a|ip}", &["a: x"], "user:header.a=x"),
        // An ambiguous alternative is an error and is not skipped.
        (
            "{header.a|ip}",
            &["a: 1", "a: 2"],
            "! the request has several values for header.a; send one",
        ),
    ] {
        assert_eq!(key(template, "/", lines), expected, "{template} {lines:?}");
    }
}

#[test]
fn different_values_for_a_source_are_an_error() {
    for (template, target, lines, expected) in [
        ("{header.a}", "/", &["a: 1", "a: 1"][..], "1"),
        (
            "{header.a}",
            "/",
            &["a: 1", "a: 2"],
            "! the request has several values for header.a; send one",
        ),
        ("{query.a}", "/?a=1&b=2&a=%31", &[], "1"),
        ("{query.a}", "/?a=1&a=2", &[], "! the request has several values for query.a; send one"),
        ("{query.a}", "/?%61=1&a=", &[], "! the request has several values for query.a; send one"),
        ("{cookie.a}", "/", &["cookie: a=1; a=\"%31\""], "1"),
        (
            "{cookie.a}",
            "/",
            &["cookie: a=1", "cookie: a=2"],
            "! the request has several values for cookie.a; send one",
        ),
    ] {
        assert_eq!(key(template, target, lines), expected, "{template} {target} {lines:?}");
    }
}

#[test]
fn values_cannot_move_a_boundary() {
    for (template, lines, expected) in [
        ("{header.a}:{header.b}", &["a: x:y", "b: z"][..], "x%3Ay:z"),
        ("{header.a}:{header.b}", &["a: x", "b: y:z"], "x:y%3Az"),
        ("{header.a}:{header.b}", &["a: x%3Ay", "b: z"], "x%253Ay:z"),
        ("{header.a}--{header.b}", &["a: x-", "b: y"], "x%2D--y"),
        ("v1/{header.a|ip}/{path}", &["a: q/1"], "v1/header.a=q%2F%31/%2Fp"),
    ] {
        assert_eq!(key(template, "/p", lines), expected, "{template} {lines:?}");
    }
    // A single placeholder has no boundary to move.
    assert_eq!(key("user:{header.a}", "/", &["a: x:%"]), "user:x:%");
}

#[test]
fn keys_longer_than_the_maximum_are_an_error() {
    for (bytes, expected) in [
        (64, "x".repeat(64)),
        (65, "! {header.a} makes a key of more than 64 bytes; send a shorter value".to_owned()),
    ] {
        assert_eq!(key("{header.a}", "/", &[&format!("a: {}", "x".repeat(bytes))]), expected);
    }
}

#[test]
fn invalid_templates_are_rejected() {
    let name = "expected a name after the dot of {query.NAME}, without whitespace and = | { }";
    let sources = "unknown placeholder; expected {ip}, {host}, {method}, {path}, {path.N}, \
                   {header.NAME}, {query.NAME}, {cookie.NAME} or {jwt.CLAIM}";
    for (text, remedy) in [
        (
            "",
            "a key template cannot be empty; write \"{ip}\" for a limit per client, or a word for \
             one limit on all requests",
        ),
        ("{ip", "unclosed {; write placeholders as in {ip}"),
        ("ip}", "unmatched }; write placeholders as in {ip}"),
        ("{}", sources),
        ("{{ip}}", &format!("{sources}; did you mean \"ip\"?")),
        ("{adress}", sources),
        ("{heade.x}", &format!("{sources}; did you mean \"header\"?")),
        ("{header}", "header needs a name, as in {header.NAME}"),
        ("{header.a b}", "expected a header name such as x-api-key"),
        ("{query.}", name),
        ("{query.a=b}", name),
        ("{ip.1}", "ip takes no name; write {ip}"),
        ("{path.0}", "expected the number of a segment, counted from 1, as in {path.1}"),
        ("{path.+1}", "expected the number of a segment, counted from 1, as in {path.1}"),
        ("{ip|ip}", "ip is listed twice; remove one of the two"),
        (
            "{ip|host}{method}",
            "add text between {ip|host} and {method}, such as a colon, so that their values cannot \
             run together",
        ),
        (
            "{ip}%{path}",
            "use other text than % between placeholders; % marks escaped bytes in values",
        ),
    ] {
        assert_eq!(Template::parse(text).unwrap_err(), remedy, "{text}");
    }
}

/// Values of pieces that could be mistaken for a boundary, an escape or a name.
fn values() -> impl Strategy<Value = String> {
    let pieces =
        prop::sample::select(vec!["a", ":", "%", "3", "A", "=", "ip", "2", "-", "header.a="]);
    prop::collection::vec(pieces, 1..8).prop_map(|x| x.concat())
}

proptest! {
    /// Keys are equal only if all values are.
    #[test]
    fn different_requests_have_different_keys(
        template in prop::sample::select(vec![
            "{header.a}:{header.b}", "{header.a}A{header.b}", "{header.a}3A{header.b}",
            "{header.a|header.b}:{header.b}", "{header.a}-{header.b}",
            "x{header.a}2{header.b}5", "{header.a|ip}=", "{header.a}header.a={header.b}",
        ]),
        first in (values(), values()),
        second in (values(), values()),
    ) {
        let key_of = |(a, b): &(String, String)| {
            key(template, "/", &[&format!("a: {a}"), &format!("b: {b}")])
        };
        let used = |(a, b): &(String, String)| {
            let b = if template.contains("header.b}") { b.clone() } else { String::new() };
            (a.clone(), b)
        };
        prop_assume!(!key_of(&first).starts_with('!') && !key_of(&second).starts_with('!'));
        prop_assert_eq!(key_of(&first) == key_of(&second), used(&first) == used(&second));
    }

    #[test]
    fn arbitrary_text_parses_or_is_rejected(text in "[{}|.a-z%:]{0,24}|\\PC{0,16}") {
        match Template::parse(&text) {
            Ok(template) => prop_assert_eq!(Template::parse(&template.to_string()), Ok(template)),
            Err(error) => prop_assert!(!error.is_empty()),
        }
    }
}

/// A comma with a space is part of a value, such as that of `User-Agent`.
#[test]
fn joined_lines_of_a_header_are_ambiguous() {
    for (value, is_ambiguous) in [
        ("a", false),
        ("(KHTML, like Gecko)", false),
        ("a,b", true),
        ("a,", true),
        (",a", true),
        (", a", true),
        ("a, b,c", true),
    ] {
        let headers = headers(&[&format!("x-api-key: {value}")]);
        let mut facts = facts("/", &headers);
        let template = Template::parse("{header.x-api-key}").unwrap();
        let path = Path::decoded(b"/");
        let expected = Ok(value.as_bytes().to_vec());
        assert_eq!(template.key(&facts, &path, 64), expected, "{value}");
        facts.has_joined_headers = true;
        let ambiguous = Err(KeyError::Ambiguous("header.x-api-key".to_owned()));
        let expected = if is_ambiguous { ambiguous } else { expected };
        assert_eq!(template.key(&facts, &path, 64), expected, "{value}");
    }
}
