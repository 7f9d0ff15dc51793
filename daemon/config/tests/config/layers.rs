//! What lies over what, and what is printed of it.

use std::path::Path;

use tollgate_config::{Address, Config, Layers, config_fields};

fn variables(all: &[(&str, &str)]) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    all.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn the_environment_lies_over_the_file_and_flags_over_both() {
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
            // What Kubernetes sets beside a service of this name, and what is of other programs.
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
        assert!(printed.lines().any(|it| it == line), "{line}\n{printed}");
    }
}

#[test]
fn a_variable_that_cannot_be_meant_is_an_error() {
    for (name, value, said) in [
        ("TOLLGATE_STORE__URLS", "x", "there is no field store.urls; did you mean \"url\"?"),
        ("TOLLGATE_STOER__URL", "x", "there is no field stoer; did you mean \"store\"?"),
        ("TOLLGATE_STORE__URL__X", "x", "there is no field below store.url"),
        (
            "TOLLGATE_LISTEN__ADMIN",
            "x",
            "there is no field listen.admin in this version: leave it out",
        ),
        ("TOLLGATE_POLICIES", "x", "policies can be said in the file only"),
        ("TOLLGATE_POLICIES__API__LIMITS", "1/s", "policies can be said in the file only"),
        ("TOLLGATE_RULES__0__POLICY", "x", "rules can be said in the file only"),
        ("TOLLGATE_TOKENS", "x", "tokens can be said in the file only"),
        ("TOLLGATE_LOG", "debug", "log has fields: name one of them, as in TOLLGATE_LOG__LEVEL"),
        (
            "TOLLGATE_LOG__LEVEL",
            "loud",
            "log.level: \"loud\": write error, warn, info, debug or trace",
        ),
        (
            "TOLLGATE_HEADERS",
            "draft12",
            "headers[0]: \"draft12\": write draft11, legacy-delta, legacy-epoch, draft6 or none",
        ),
        (
            "TOLLGATE_STORE__DEADLINE",
            "5ms",
            "store.deadline: it is of a store on Redis, and this one is memory: leave it out, or name the server in store.url, such as redis://127.0.0.1:6379",
        ),
    ] {
        let errors = Layers::new().environment(variables(&[(name, value)])).read().unwrap_err();
        assert_eq!(errors.to_string(), format!("{name}: {said}"));
        assert!(errors.report().starts_with(&format!("error: {said}\n --> {name}\n")));
    }
    let errors = Layers::new().flag("--http", "listen.http", "nonsense").read().unwrap_err();
    let said = "write HOST:PORT, such as 127.0.0.1:8080, unix:PATH or off";
    assert_eq!(errors.to_string(), format!("--http: listen.http: \"nonsense\": {said}"));
}

#[test]
fn a_mistake_that_something_lies_over_is_still_one() {
    let layers = Layers::new().yaml("limits: { checks: 99 }");
    let errors = layers.flag("--checks", "limits.checks", "3").read().unwrap_err();
    assert!(errors.to_string().starts_with("line 1, column 19: limits.checks: "), "{errors}");
}

#[test]
fn paths_are_relative_to_the_file_but_not_those_of_the_environment() {
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

#[test]
fn what_is_printed_can_be_read_and_is_the_same_again() {
    let every =
        include_str!("every_field.yaml").replace("token: \"s3cret:with-#\"", "token_file: t");
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
}

/// All that a configuration says, policies by name.
fn all_of(config: &Config) -> String {
    let mut policies: Vec<_> = config.policies.iter().map(|policy| format!("{policy:?}")).collect();
    policies.sort();
    let Config { store, listen, tokens, rules, trusted_proxies, jwt, limits, .. } = config;
    format!(
        "{policies:?} {store:?} {listen:?} {tokens:?} {rules:?} {trusted_proxies:?} {jwt:?} {limits:?}"
    )
}

#[test]
fn the_files_of_every_field_have_every_field() {
    let both =
        [include_str!("every_field.yaml"), include_str!("every_field_of_redis.yaml")].concat();
    for field in config_fields() {
        let name = field.rsplit('.').next().unwrap();
        assert!(both.contains(&format!("{name}:")), "{field}");
    }
}

#[test]
fn what_needs_a_restart_is_told_by_its_fields() {
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
fn a_file_made_to_hurt_is_an_error() {
    let laughs = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, x| {
        let last = format!("*a{}", x - 1);
        format!("{text}a{x}: &a{x} [{}]\n", vec![last; 10].join(", "))
    });
    let nested = (1..40)
        .fold("a0: &a0 [x]\n".to_owned(), |text, x| format!("{text}a{x}: &a{x} [*a{}]\n", x - 1));
    for (yaml, said) in [
        (laughs, "more than 250000 values"),
        (nested, "values may be nested at most 32 deep"),
        ("[".repeat(1_000_000), "values may be nested at most 32 deep"),
        ("- ".repeat(1_000_000), "values may be nested at most 32 deep"),
        ("{a: ".repeat(1_000_000), "values may be nested at most 32 deep"),
        (format!("headers: [{}]", "a,".repeat(300_000)), "more than 250000 values"),
        (format!("namespace: {}", "a".repeat(1_000_000)), "write 1 to 64 letters"),
        ("a: 1\n".repeat(100_000), "… and 99980 more"),
        ("\u{0}".to_owned(), ""),
        ("\u{feff}namespace: a b".to_owned(), "write 1 to 64 letters"),
    ] {
        let errors = Config::from_yaml(&yaml).unwrap_err();
        assert!(errors.to_string().contains(said), "{errors}");
        assert!(errors.report().len() < 20_000);
    }
}

#[test]
fn a_file_that_is_too_long_or_no_text_is_not_read() {
    let file = std::env::temp_dir().join(format!("tollgate-long-{}.yaml", std::process::id()));
    for (bytes, said) in [
        (vec![b'#'; 16 * 1024 * 1024 + 1], "more than 16777216 bytes are not read"),
        (b"namespace: \xff".to_vec(), "it is not UTF-8 from byte 11 on"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let errors = Config::load(&file).unwrap_err().to_string();
        assert_eq!(errors, format!("{}: {said}", file.display()));
    }
    std::fs::remove_file(&file).unwrap();
}
