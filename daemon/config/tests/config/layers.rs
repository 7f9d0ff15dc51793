//! Precedence of files, variables and flags, and the printed configuration.

use std::path::Path;

use tollgate_config::{Address, Config, Layers, config_fields};

fn variables(all: &[(&str, &str)]) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    all.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn flags_take_precedence_over_variables_and_variables_over_the_file() {
    let layers = Layers::new()
        .yaml("namespace: file\nlimits: { checks: 1, connections: 1, body: 64 }\nheaders: [none]")
        .environment(variables(&[
            ("TOLLGATE_NAMESPACE", "variable"),
            ("TOLLGATE_LIMITS__CHECKS", "2"),
            ("TOLLGATE_LIMITS__CONNECTIONS", "2"),
            ("TOLLGATE_STORE__URL", "redis://u:s3cret@h"),
            ("TOLLGATE_STORE__PASSWORD_FILE", "pw"),
            ("TOLLGATE_LISTEN__TLS__CERT", "null"),
            ("TOLLGATE_HEADERS", "draft6, legacy-delta"),
            ("TOLLGATE_TRUSTED_PROXIES", "10.0.0.0/8,unix"),
            // Variables that Kubernetes sets next to a service of this name, and variables of other
            // programs.
            ("TOLLGATE_PORT", "tcp://10.0.0.1:80"),
            ("TOLLGATE_SERVICE_HOST", "10.0.0.1"),
            ("TOLLGATE_URL", "http://h"),
            ("OTHER__THING", "x"),
        ]))
        .flag("--checks", "limits.checks", "3");
    let layered = layers.read().unwrap();
    let config = &layered.config;
    assert_eq!((&*config.namespace, config.limits.body), ("variable", 64));
    assert_eq!((config.limits.checks, config.limits.connections), (3, 2));
    assert_eq!(config.store.url.as_str(), "redis://u:s3cret@h");
    assert_eq!(config.store.password_file.as_deref(), Some(Path::new("pw")));
    assert_eq!(config.headers.len(), 2);
    assert!(config.trusted_proxies.contains("10.1.1.1".parse().unwrap()));
    let printed = layered.print(true);
    for line in [
        "namespace: variable  # TOLLGATE_NAMESPACE",
        "  checks: 3  # --checks",
        "  body: 64  # line 2",
        "  url: \"redis://u:***@h\"  # TOLLGATE_STORE__URL",
        "  deadline: 15ms",
    ] {
        assert!(printed.lines().any(|other| other == line), "{line}\n{printed}");
    }
}

#[test]
fn unknown_variables_with_two_underscores_are_errors() {
    for (name, value, expected) in [
        ("TOLLGATE_STORE__URLS", "x", "unknown field store.urls; did you mean \"url\"?"),
        ("TOLLGATE_STOER__URL", "x", "unknown field stoer; did you mean \"store\"?"),
        ("TOLLGATE_STORE__URL__X", "x", "store.url has no fields"),
        (
            "TOLLGATE_LISTEN__ADMIN",
            "0.0.0.0:9090",
            "listen.admin: other machines reach 0.0.0.0:9090, where the dashboard requires a token; \
             add one with the scope read to tokens, or use a loopback address or a Unix socket",
        ),
        ("TOLLGATE_POLICIES", "x", "policies can be set only in the file"),
        ("TOLLGATE_POLICIES__API__LIMITS", "1/s", "policies can be set only in the file"),
        ("TOLLGATE_RULES__0__POLICY", "x", "rules can be set only in the file"),
        ("TOLLGATE_TOKENS", "x", "tokens can be set only in the file"),
        (
            "TOLLGATE_LOG",
            "debug",
            "log is a section; set one of its fields, as in TOLLGATE_LOG__LEVEL",
        ),
        (
            "TOLLGATE_LOG__LEVEL",
            "loud",
            "log.level: \"loud\": expected error, warn, info, debug or trace",
        ),
        (
            "TOLLGATE_HEADERS",
            "draft12",
            "headers[0]: \"draft12\": expected draft11, legacy-delta, legacy-epoch, draft6 or none",
        ),
        (
            "TOLLGATE_STORE__DEADLINE",
            "5ms",
            "store.deadline: applies to Redis stores only, but store.url is memory; remove it, or \
             set store.url to a server such as redis://127.0.0.1:6379",
        ),
    ] {
        let errors = Layers::new().environment(variables(&[(name, value)])).read().unwrap_err();
        assert_eq!(errors.to_string(), format!("{name}: {expected}"));
        assert!(errors.report().starts_with(&format!("error: {expected}\n --> {name}\n")));
    }
    let errors = Layers::new().flag("--http", "listen.http", "nonsense").read().unwrap_err();
    let expected = "expected HOST:PORT, such as 127.0.0.1:8080, unix:PATH or off";
    assert_eq!(errors.to_string(), format!("--http: listen.http: \"nonsense\": {expected}"));
}

#[test]
fn overridden_values_are_still_validated() {
    let layers = Layers::new().yaml("limits: { checks: 99 }");
    let errors = layers.flag("--checks", "limits.checks", "3").read().unwrap_err();
    assert!(errors.to_string().starts_with("line 1, column 19: limits.checks: "), "{errors}");
}

#[test]
fn paths_in_the_file_are_relative_to_the_file() {
    let yaml = "store: { data: state }\nlisten: { http: unix:run/s, tls: { cert: /c, key: k } }";
    let layers = Layers::new().named_yaml("etc/tollgate.yaml", yaml);
    let layers = layers.environment(variables(&[("TOLLGATE_LISTEN__METRICS", "unix:m")]));
    let config = layers.flag("--key", "listen.tls.key", "k").read().unwrap().config;
    assert_eq!(config.store.data.as_deref(), Some(Path::new("etc/state")));
    assert_eq!(config.listen.http, Address::Unix("etc/run/s".into()));
    assert_eq!(config.listen.metrics, Address::Unix("m".into()));
    let tls = config.listen.tls.unwrap();
    assert_eq!((&*tls.cert, &*tls.key), (Path::new("/c"), Path::new("k")));
}

/// A line of `every_field.yaml`.
const DIGEST: &str =
    "token_sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn printed_configuration_parses_to_the_same_configuration() {
    let mut every = include_str!("every_field.yaml").to_owned();
    // Secrets are masked.
    for secret in ["token: \"s3cret:with-#-in-it\"", DIGEST] {
        assert!(every.contains(secret));
        every = every.replace(secret, "token_file: t");
    }
    for yaml in [
        "",
        &every,
        "limits: { body: 1MiB }",
        "namespace: \"null\"\nstore: { data: \"a \\\"b: # \\t\" }",
    ] {
        let first = Layers::new().yaml(yaml).read().unwrap();
        for printed in [first.print(false), first.print(true)] {
            let again = Layers::new()
                .yaml(&printed)
                .read()
                .unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(all_of(&again.config), all_of(&first.config), "{printed}");
            assert_eq!(again.print(false), first.print(false));
            assert!(first.config.needs_restart(&again.config).is_empty());
        }
    }
    let printed = Layers::new().yaml(include_str!("every_field.yaml")).read().unwrap().print(true);
    assert!(!printed.contains("s3cret") && printed.contains("token: \"***\""), "{printed}");
    assert!(!printed.contains(DIGEST) && printed.contains("token_sha256: \"***\""), "{printed}");
}

/// The contents of a configuration, with policies sorted by name.
fn all_of(config: &Config) -> String {
    let mut policies: Vec<_> = config.policies.iter().map(|policy| format!("{policy:?}")).collect();
    policies.sort();
    let Config { store, listen, tokens, rules, trusted_proxies, jwt, limits, .. } = config;
    format!(
        "{policies:?} {store:?} {listen:?} {tokens:?} {rules:?} {trusted_proxies:?} {jwt:?} {limits:?}"
    )
}

#[test]
fn every_field_files_contain_every_field() {
    let all = [
        include_str!("every_field.yaml"),
        include_str!("every_field_of_redis.yaml"),
        include_str!("every_field_of_sentinels.yaml"),
    ]
    .concat();
    for field in config_fields() {
        let name = field.rsplit('.').next().unwrap();
        assert!(all.contains(&format!("{name}:")), "{field}");
    }
}

#[test]
fn changed_fields_that_need_a_restart_are_reported() {
    let of = |yaml| Config::from_yaml(yaml).unwrap();
    let usual = of("store: { snapshot_interval: 5s }");
    for (yaml, expected) in [
        ("", &[][..]),
        ("store: { snapshot_interval: 5000ms }\nlimits: { checks: 3 }\nlog: { level: warn }", &[]),
        ("namespace: other", &["namespace"]),
        (
            "listen: { http: off, tls: { cert: c, key: k } }",
            &["listen.http", "listen.tls.cert", "listen.tls.key"],
        ),
        ("store: { url: \"redis://a:s3cret@h\" }", &["store.url"]),
    ] {
        assert_eq!(usual.needs_restart(&of(yaml)), expected, "{yaml}");
        assert_eq!(of(yaml).needs_restart(&usual), expected, "{yaml}");
    }
}

#[test]
fn malicious_files_are_errors() {
    let laughs = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, x| {
        let last = format!("*a{}", x - 1);
        format!("{text}a{x}: &a{x} [{}]\n", vec![last; 10].join(", "))
    });
    let nested = (1..40)
        .fold("a0: &a0 [x]\n".to_owned(), |text, x| format!("{text}a{x}: &a{x} [*a{}]\n", x - 1));
    for (yaml, expected) in [
        (laughs, "more than 250000 values"),
        (nested, "values may be nested at most 32 deep"),
        ("[".repeat(1_000_000), "values may be nested at most 32 deep"),
        ("- ".repeat(1_000_000), "values may be nested at most 32 deep"),
        ("{a: ".repeat(1_000_000), "values may be nested at most 32 deep"),
        (format!("headers: [{}]", "a,".repeat(300_000)), "more than 250000 values"),
        (format!("namespace: {}", "a".repeat(1_000_000)), "expected 1 to 64 letters"),
        ("a: 1\n".repeat(100_000), "… and 99980 more"),
        ("\u{0}".to_owned(), ""),
        ("\u{feff}namespace: a b".to_owned(), "expected 1 to 64 letters"),
    ] {
        let errors = Config::from_yaml(&yaml).unwrap_err();
        assert!(errors.to_string().contains(expected), "{errors}");
        assert!(errors.report().len() < 20_000);
    }
}

#[test]
fn files_that_are_too_long_or_not_utf8_are_errors() {
    let folder = tollgate_testkit::Folder::create();
    for (bytes, expected) in [
        (vec![b'#'; 16 * 1024 * 1024 + 1], "longer than the maximum of 16777216 bytes"),
        (b"namespace: \xff".to_vec(), "invalid UTF-8 at byte 11"),
    ] {
        let file = folder.write("a.yaml", bytes);
        let errors = Config::load(&file).unwrap_err().to_string();
        assert_eq!(errors, format!("{}: {expected}", file.display()));
    }
}
