//! The configuration file: what it may say, and what is said of every mistake.

use std::time::Duration;

use tollgate::OnStoreError;
use tollgate_server::Config;

#[test]
fn every_field_is_read() {
    let config = Config::from_yaml(include_str!("every_field.yaml")).unwrap();
    assert_eq!(config.namespace, "shop");
    assert_eq!(config.store.data.as_deref(), Some("state".as_ref()));
    assert_eq!(config.store.snapshot_interval, Duration::from_millis(1_500));
    assert_eq!(config.store.max_keys, 50_000);
    assert_eq!(config.store.table_full, tollgate::TableFull::Allow);
    assert_eq!(config.listen.http, "[::1]:8088");
    assert_eq!(config.limits.key_bytes, 512);
    assert_eq!(config.limits.body, 16 * 1024);
    assert_eq!(config.limits.checks, 8);
    assert_eq!(config.limits.connections, 100);
    assert_eq!(config.limits.header_timeout, Duration::from_secs(5));
    assert_eq!(config.limits.idle, Duration::from_secs(60));
    assert_eq!(config.drain.timeout, Duration::from_secs(3));
    let api = config.policies.get("api").unwrap();
    assert_eq!(api.to_string(), "10/s burst 20; 1000/h sliding by 1min");
    assert_eq!((api.is_shadow(), api.max_keys()), (true, Some(1_000)));
    assert!(api.listed(b"health-check").is_some() && api.listed(b"bot-7").is_some());
    assert_eq!(config.policies.get("sms").unwrap().to_string(), "10/d log");
}

#[test]
fn every_field_of_a_store_on_redis_is_read() {
    let config = Config::from_yaml(
        "store: { url: rediss://u:secret@h, connections: 3, deadline: 5ms, connect_timeout: 2s,
                  ca: ca.pem, cert: c.pem, key: k.pem, username: ann, password_file: pw }
policies: { a: { limits: [1/s], on_store_error: allow }, b: { limits: [1/s] } }",
    )
    .unwrap();
    let store = &config.store;
    assert_eq!((store.url.is_memory(), store.url.as_str()), (false, "rediss://u:secret@h"));
    assert_eq!((store.connections, store.deadline), (3, Duration::from_millis(5)));
    assert_eq!(store.connect_timeout, Duration::from_secs(2));
    assert_eq!(store.ca.as_deref(), Some("ca.pem".as_ref()));
    assert_eq!(store.cert.as_deref(), Some("c.pem".as_ref()));
    assert_eq!(store.key.as_deref(), Some("k.pem".as_ref()));
    assert_eq!(store.username.as_deref(), Some("ann"));
    assert_eq!(store.password_file.as_deref(), Some("pw".as_ref()));
    assert!(!format!("{config:?}").contains("secret"));
    let answer = |name| config.policies.get(name).unwrap().on_store_error();
    assert_eq!((answer("a"), answer("b")), (OnStoreError::Allow, OnStoreError::Deny));
}

#[test]
fn what_has_no_effect_may_be_written_with_its_default() {
    for url in ["memory", "redis://h"] {
        let yaml = format!(
            "store: {{ url: \"{url}\", data: null, snapshot_interval: 5s, max_keys: 1000000, table_full: deny,
                      connections: 2, deadline: 15ms, connect_timeout: 1s, ca: null, cert: null, key: null,
                      username: null, password_file: null }}"
        );
        assert_eq!(Config::from_yaml(&yaml).unwrap().store.url.as_str(), url);
    }
}

#[test]
fn a_file_without_a_url_is_held_to_the_store_that_is_chosen_later() {
    let mut config = Config::from_yaml("store: { deadline: 5ms }").unwrap();
    let error = config.store.check().unwrap_err().to_string();
    assert!(error.starts_with("store.deadline: it is of a store on Redis"), "{error}");
    config.store.url = "redis://h".into();
    config.store.check().unwrap();
}

#[test]
fn what_is_not_said_has_its_default() {
    for yaml in ["", "# nothing\n", "store: {}\n", "store:\n  data: null\nlimits:\n"] {
        let config = Config::from_yaml(yaml).unwrap();
        assert_eq!(config.listen.http, "127.0.0.1:8080", "{yaml:?}");
        assert_eq!((config.store.max_keys, config.store.data), (1_000_000, None), "{yaml:?}");
        assert_eq!(config.policies.iter().count(), 0, "{yaml:?}");
    }
}

/// Text of a file, and what is said of it.
const MISTAKES: &[(&str, &str)] = &[
    ("polices: {}", "line 1, column 1: unknown field \"polices\"; did you mean \"policies\"?"),
    ("store: { urls: memory }", "line 1, column 10: unknown field \"urls\"; did you mean \"url\"?"),
    (
        "policies: { api: { limit: [\"10/s\"] } }",
        "line 1, column 20: unknown field \"limit\"; did you mean \"limits\"?",
    ),
    (
        "policies: { api: { limits: [\"10/s burts 20\"] } }",
        "line 1, column 29: policies.api.limits[0]: in \"10/s burts 20\", column 6: unknown word \"burts\"; did you mean \"burst\"?",
    ),
    (
        "policies:\n  api:\n    limits:\n      - 10/s\n      - 10/month",
        "line 5, column 9: policies.api.limits[1]: in \"10/month\", column 4: \"month\" is not accepted; months differ in length: write 30d, or 1d windows",
    ),
    (
        "policies: { api: { limits: [\"9000000000000000/d log\"] } }",
        "line 1, column 29: policies.api.limits[0]: in \"9000000000000000/d log\", column 1: 9000000000000000/d log is too large to be decided exactly; the nearest lower limit that fits is 4503599627370495/d log",
    ),
    (
        "policies: { api: { limits: [] } }",
        "line 1, column 13: policies.api: a policy needs a limit, such as \"10/s\"",
    ),
    (
        "policies: { api: {} }",
        "line 1, column 13: policies.api: a policy needs a limit, such as \"10/s\"",
    ),
    (
        "policies: { api: }",
        "line 1, column 13: policies.api: a policy needs a limit, such as \"10/s\"",
    ),
    (
        "policies: { 7up: { limits: [10/s] } }",
        "line 1, column 13: policies.7up: a policy's name is a letter followed by letters, digits, '_', '-' and '.', at most 128 in all",
    ),
    (
        "policies: { api: { limits: 10/s } }",
        "line 1, column 20: write a list of texts in quotes, such as [\"10/s burst 20\"]; this is string \"10/s\"",
    ),
    (
        "policies: { api: { limits: [10/s, {a: b}] } }",
        "line 1, column 35: write one value here, not a list or fields",
    ),
    ("policies: [api]", "line 1, column 11: write fields here, as in name: value"),
    (
        "policies:\n  api: { limits: [1/s] }\n  web: { limits: [1/s] }\n  api: { limits: [2/s] }",
        "line 4, column 3: api is there twice; leave one of them out",
    ),
    (
        "store: { max_keys: 1 }\nstore: { max_keys: 2 }",
        "line 2, column 1: store is there twice; leave one of them out",
    ),
    (
        "policies: { api: { limits: [10/s], mode: leased } }",
        "line 1, column 42: policies.api.mode: \"leased\": this version has one mode: exact",
    ),
    (
        "policies: { api: { limits: [10/s], on_store_error: local } }",
        "line 1, column 52: policies.api.on_store_error: \"local\": a local answer comes with a later version; write deny or allow",
    ),
    (
        "policies: { api: { limits: [10/s], on_store_error: maybe } }",
        "line 1, column 52: policies.api.on_store_error: \"maybe\": write deny or allow",
    ),
    (
        "policies: { api: { limits: [10/s], shadow: perhaps } }",
        "line 1, column 44: policies.api.shadow: \"perhaps\": write true or false",
    ),
    (
        "policies: { api: { limits: [10/s], max_keys: 0 } }",
        "line 1, column 46: policies.api.max_keys: \"0\": write a number of at least 1, in digits",
    ),
    (
        "namespace: a b",
        "line 1, column 12: namespace: \"a b\": write 1 to 64 letters, digits, '_', '-' and '.'",
    ),
    (
        "store: { url: \"redsi://u:secret@h\" }",
        "line 1, column 15: store.url: there is no store \"redsi://u:***@h\"; there are memory, redis://HOST, redis+cluster://HOST,HOST, redis+sentinel://HOST,HOST/MASTER and redis+unix:///PATH, with rediss for TLS, and valkey wherever redis stands",
    ),
    (
        "store: { url: \"redis://u:secret@h\", data: state }",
        "line 1, column 43: store.data: it is of memory, and this store is at redis://u:***@h: leave it out",
    ),
    (
        "store: { url: redis://h, max_keys: 7 }",
        "line 1, column 36: store.max_keys: it is of memory, and this store is at redis://h: leave it out",
    ),
    (
        "store: { url: memory, deadline: 5ms }",
        "line 1, column 33: store.deadline: it is of a store on Redis, and this one is memory: leave it out, or name the server in store.url, such as redis://127.0.0.1:6379",
    ),
    (
        "store: { url: rediss://h, cert: a.pem }",
        "line 1, column 33: store.cert: write store.key too",
    ),
    (
        "store: { url: redis://h, deadline: 0s }",
        "line 1, column 36: store.deadline: \"0s\": it must be at least 1ms",
    ),
    (
        "store: { url: redis://h, connections: 65 }",
        "line 1, column 39: store.connections: \"65\": write a number from 1 to 64, in digits",
    ),
    (
        "store: { data: \"\" }",
        "line 1, column 16: store.data: \"\": write a directory, or null for none",
    ),
    (
        "store: { max_keys: many }",
        "line 1, column 20: store.max_keys: \"many\": write a number of at least 1, in digits",
    ),
    (
        "store: { max_keys: 1.5 }",
        "line 1, column 20: store.max_keys: \"1.5\": write a number of at least 1, in digits",
    ),
    (
        "store: { max_keys: +5 }",
        "line 1, column 20: store.max_keys: \"+5\": write a number of at least 1, in digits",
    ),
    ("store: { max_keys: [1] }", "line 1, column 20: write one value here, not a list or fields"),
    (
        "store: { snapshot_interval: 5 }",
        "line 1, column 29: store.snapshot_interval: in \"5\", column 2: the unit is missing; write ms, s, min, h, d or w after the number, as in 10s",
    ),
    (
        "store: { snapshot_interval: 5ms }",
        "line 1, column 29: store.snapshot_interval: \"5ms\": it must be at least 100ms",
    ),
    (
        "store: { snapshot_interval: soon }",
        "line 1, column 29: store.snapshot_interval: in \"soon\", column 1: the number is missing before \"soon\"; write it first, as in 30s",
    ),
    (
        "store: { table_full: block }",
        "line 1, column 22: store.table_full: \"block\": write deny or allow",
    ),
    (
        "listen: { http: 8080 }",
        "line 1, column 17: listen.http: \"8080\": write HOST:PORT, such as 127.0.0.1:8080",
    ),
    (
        "listen: { http: \"127.0.0.1:99999\" }",
        "line 1, column 17: listen.http: \"127.0.0.1:99999\": write HOST:PORT, such as 127.0.0.1:8080",
    ),
    ("listen: 127.0.0.1:8080", "line 1, column 9: write fields here, as in name: value"),
    (
        "limits: { key_bytes: 70000 }",
        "line 1, column 22: limits.key_bytes: \"70000\": write a number of bytes from 1 to 65536, such as 64KiB",
    ),
    (
        "limits: { body: 64KB }",
        "line 1, column 17: limits.body: \"64KB\": write a number of bytes from 64 to 67108864, such as 64KiB",
    ),
    (
        "limits: { checks: 33 }",
        "line 1, column 19: limits.checks: \"33\": write a number from 1 to 32, in digits",
    ),
    (
        "limits: { connections: 0 }",
        "line 1, column 24: limits.connections: \"0\": write a number from 1 to 1000000, in digits",
    ),
    (
        "limits: { header_timeout: 0s }",
        "line 1, column 27: limits.header_timeout: \"0s\": it must be at least 1ms",
    ),
    (
        "limits: { idle: never }",
        "line 1, column 17: limits.idle: in \"never\", column 1: the number is missing before \"never\"; write it first, as in 30s",
    ),
    (
        "drain: { timeout: 20 }",
        "line 1, column 19: drain.timeout: in \"20\", column 3: the unit is missing; write ms, s, min, h, d or w after the number, as in 10s",
    ),
    ("drain: { delay: 5s }", "line 1, column 10: unknown field \"delay\"; known here are timeout"),
    ("policies: { api: { limits: [10/s] }", "line 1, column 11: unclosed bracket '{'"),
    ("  - : }{", "line 1, column 3: write fields here, as in name: value"),
    (
        "a: &a [*a]",
        "line 1, column 1: unknown field \"a\"; known here are namespace, store, listen, policies, limits, drain",
    ),
];

#[test]
fn every_mistake_is_named_with_its_place() {
    for (yaml, said) in MISTAKES {
        let error = Config::from_yaml(yaml).unwrap_err();
        assert_eq!(error.to_string(), *said, "{yaml:?}");
    }
}

#[test]
fn a_mistake_in_a_file_names_the_file() {
    let file = std::env::temp_dir().join(format!("tollgate-{}.yaml", std::process::id()));
    std::fs::write(&file, "policies:\n  api: { limits: [\"10/month\"] }\n").unwrap();
    let error = Config::load(&file).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    let name = file.display();
    assert!(error.to_string().starts_with(&format!("{name}:2:19: policies.api.limits[0]: ")));
    let missing = Config::load(&file).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("{name}: it cannot be read: ")), "{missing}");
}
