//! Invalid configurations and their messages.

use super::*;

/// The error for files named `1.yaml`, `2.yaml` and so on.
fn error(texts: &[&str], merge_domains: bool) -> DescriptorConfigError {
    let name = |(index, text): (usize, &&str)| Source::new(format!("{}.yaml", index + 1), *text);
    let sources = texts.iter().enumerate().map(name).collect::<Vec<_>>();
    let options = ReadOptions { merge_domains, ..ReadOptions::default() };
    Domains::from_yaml(&sources, &options).unwrap_err()
}

/// The error for one file, or for the descriptors of a domain `d`, which are a list of mappings.
fn error_of_file(text: &str) -> String {
    match text.starts_with("[{") {
        true => error(&[&format!("{{domain: d, descriptors: {text}}}")], false).to_string(),
        false => error(&[text], false).to_string(),
    }
}

/// Rows of a file or descriptors, and the error message.
#[track_caller]
fn check_errors(rows: &[(&str, &str)]) {
    for (text, message) in rows {
        assert_eq!(error_of_file(text), format!("1.yaml: {message}"), "{text}");
    }
}

#[test]
fn invalid_configurations_have_the_messages_of_envoyproxy_ratelimit() {
    let rows = [
        ("descriptors:", "config file cannot have empty domain"),
        ("", "config file cannot have empty domain"),
        ("domain: ''", "config file cannot have empty domain"),
        ("[{value: v}]", "descriptor has empty key"),
        ("[{}]", "descriptor has empty key"),
        ("[{key: k, value: v}, {key: k, value: v}]", "duplicate descriptor composite key 'd.k_v'"),
        (
            "[{key: o, descriptors: [{key: k}, {key: k}]}]",
            "duplicate descriptor composite key 'd.o.k'",
        ),
        ("[{key: k_v}, {key: k, value: v}]", "duplicate descriptor composite key 'd.k_v'"),
        ("[{key: k, rate_limit: {unit: foo}}]", "invalid rate limit unit 'foo'"),
        ("[{key: k, rate_limit: {}}]", "invalid rate limit unit ''"),
        ("[{key: k, rate_limit: {unit: UNKNOWN}}]", "invalid rate limit unit 'UNKNOWN'"),
        (
            "[{key: k, rate_limit: {unlimited: true, unit: day}}]",
            "should not specify rate limit unit when unlimited",
        ),
        (
            "[{key: k, rate_limit: {unit: day, name: n, replaces: [{name: n}]}}]",
            "replaces should not contain name of same descriptor",
        ),
        (
            "[{key: k, rate_limit: {unit: day, name: n, replaces: [{name: }]}}]",
            "should not have an empty replaces entry",
        ),
        (
            "[{key: k, value: v, share_threshold: true}]",
            "share_threshold can only be used with wildcard values (containing '*'), but found key 'k_v'",
        ),
    ];
    check_errors(&rows);
}

#[test]
fn unknown_fields_have_the_messages_of_envoyproxy_ratelimit() {
    let rows = [
        ("[{key: k, ratelimit: {unit: day}}]", "config error, unknown key 'ratelimit'"),
        (
            "[{key: k, rate_limit: {requestsperunit: 1}}]",
            "config error, unknown key 'requestsperunit'",
        ),
        ("0.25: d", "config error, key is not of type string: 0.25"),
        ("{domain: d, 1e3: x}", "config error, key is not of type string: 1000"),
        ("{domain: d, yes: x}", "config error, key is not of type string: true"),
        ("{domain: d, ~: x}", "config error, key is not of type string: <nil>"),
        (
            "{domain: d, descriptors: [a, b]}",
            "config error, yaml file contains list of type other than map: a",
        ),
        (
            "{domain: d, descriptors: [[a, {b: 1.50}]]}",
            "config error, yaml file contains list of type other than map: [a map[b:1.5]]",
        ),
        (
            "{domain: d, descriptors: [~]}",
            "config error, yaml file contains list of type other than map: <nil>",
        ),
        ("[{key: k, value: 1.5}]", "error checking config"),
        ("domain: 18446744073709551615", "error checking config"),
    ];
    check_errors(&rows);
}

#[test]
fn wrong_types_have_the_messages_of_envoyproxy_ratelimit() {
    let rows = [
        ("[a]", "line 1: cannot unmarshal !!seq into map[interface {}]interface {}"),
        ("words", "line 1: cannot unmarshal !!str `words` into map[interface {}]interface {}"),
        ("{domain: {}}", "line 1: cannot unmarshal !!map into string"),
        (
            "domain: d\ndescriptors: 5",
            "line 2: cannot unmarshal !!int `5` into []config.YamlDescriptor",
        ),
        (
            "{domain: d, descriptors: {}}",
            "line 1: cannot unmarshal !!map into []config.YamlDescriptor",
        ),
        (
            "[{key: k, rate_limit: 10/s}]",
            "line 1: cannot unmarshal !!str `10/s` into config.YamlRateLimit",
        ),
        (
            "[{key: k, rate_limit: {requests_per_unit: -1}}]",
            "line 1: cannot unmarshal !!int `-1` into uint32",
        ),
        (
            "[{key: k, rate_limit: {requests_per_unit: 4294967296}}]",
            "line 1: cannot unmarshal !!int `4294967296` into uint32",
        ),
        (
            "[{key: k, rate_limit: {requests_per_unit: '1'}}]",
            "line 1: cannot unmarshal !!str `1` into uint32",
        ),
        (
            "[{key: k, rate_limit: {requests_per_unit: one million}}]",
            "line 1: cannot unmarshal !!str `one mil...` into uint32",
        ),
        (
            "[{key: k, rate_limit: {replaces: other}}]",
            "line 1: cannot unmarshal !!str `other` into []config.yamlReplaces",
        ),
        ("[{key: k, shadow_mode: 1}]", "line 1: cannot unmarshal !!int `1` into bool"),
        (
            "[{key: k, metadata: m}]",
            "line 1: cannot unmarshal !!str `m` into map[string]interface {}",
        ),
        (
            "domain: d\ndescriptors:\n- quota_mode: often\n  detailed_metric: 'true'\n  key: k",
            "line 3: cannot unmarshal !!str `often` into bool\n  \
             line 4: cannot unmarshal !!str `true` into bool",
        ),
    ];
    for (text, message) in rows {
        let begin = "1.yaml: error loading config file: yaml: unmarshal errors:\n  ";
        assert_eq!(error_of_file(text), format!("{begin}{message}"), "{text}");
    }
}

#[test]
fn ambiguous_yaml_is_rejected() {
    let rows = [
        ("domain: d\ndomain: e", "line 2: domain is defined twice"),
        ("domain: d\n---\ndomain: e", "line 2: a second document begins here"),
        ("domain: !secret d", "line 1: tags such as !name are not supported"),
        ("domain: d\n'''", "line "),
        ("domain: [", "line "),
        ("domain: *d", "line "),
    ];
    for (text, message) in rows {
        let error = error(&[text], false).to_string();
        let begin = format!("1.yaml: error loading config file: yaml: {message}");
        assert!(error.starts_with(&begin), "{text}: {error}");
    }
}

#[test]
fn all_files_are_parsed_before_domains_are_merged() {
    let d = "{domain: d, descriptors: [{key: k}]}";
    let rows: &[(&[&str], bool, &str)] = &[
        (&[d, "{domain: d}"], false, "2.yaml: duplicate domain 'd' in config file"),
        (&[d, d], true, "2.yaml: duplicate descriptor composite key 'd.k'"),
        (
            &["descriptors:", "domain: []"],
            false,
            "2.yaml: error loading config file: yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into string",
        ),
        (&[d, "descriptors:"], false, "2.yaml: config file cannot have empty domain"),
    ];
    for (texts, merge, message) in rows {
        assert_eq!(error(texts, *merge).to_string(), *message);
    }
}

#[test]
fn error_has_file_line_and_message() {
    let text = "domain: d\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: foo";
    let error = error(&[text], false);
    assert_eq!((&*error.file, error.line), ("1.yaml", Some(5)));
    assert_eq!(error.message, "invalid rate limit unit 'foo'");
}

#[test]
fn nesting_beyond_the_maximum_is_rejected() {
    let nested = |depth: usize| {
        let open = "{key: k, descriptors: [".repeat(depth);
        format!("{{domain: d, descriptors: [{open}{}]}}", "]}".repeat(depth))
    };
    let sources = |depth| [Source::new("1.yaml", nested(depth))];
    assert!(Domains::from_yaml(&sources(99), &ReadOptions::default()).is_ok());
    let error = error(&[&nested(100)], false).to_string();
    assert!(error.ends_with("values may be nested at most 200 deep"), "{error}");
}

#[test]
fn aliases_that_expand_beyond_the_maximum_are_rejected() {
    let bomb = (1..30).fold("metadata0: &a0 {a: b}\n".to_owned(), |text, y| {
        format!("{text}metadata{y}: &a{y} {{x: *a{0}, y: *a{0}}}\n", y - 1)
    });
    let error = error(&[&bomb], false).to_string();
    assert!(error.contains("more than 1000000 values"), "{error}");
}

#[test]
fn descriptor_paths_longer_than_a_key_are_rejected() {
    let text = |value: usize| {
        format!("{{domain: d, descriptors: [{{key: k, value: {}}}]}}", "v".repeat(value))
    };
    let sources = |value| [Source::new("1.yaml", text(value))];
    assert!(Domains::from_yaml(&sources(65_532), &ReadOptions::default()).is_ok());
    let error = error(&[&text(65_533)], false).to_string();
    assert!(error.starts_with("1.yaml: the path of a descriptor is longer"), "{error}");
}
