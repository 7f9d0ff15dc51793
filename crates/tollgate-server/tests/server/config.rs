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
    assert_eq!(config.listen.http.to_string(), "[::1]:8088");
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
        assert_eq!(config.listen.http.to_string(), "127.0.0.1:8080", "{yaml:?}");
        assert_eq!((config.store.max_keys, config.store.data), (1_000_000, None), "{yaml:?}");
        assert_eq!(config.policies.iter().count(), 0, "{yaml:?}");
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
