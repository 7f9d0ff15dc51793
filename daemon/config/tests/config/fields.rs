//! The values and the reference page of every configuration field.

use std::path::Path;
use std::time::Duration;

use tollgate::OnStoreError;
use tollgate_config::{
    Address, Charging, Config, FailureMode, HeaderStyle, LogFormat, LogLevel, Operators, Privacy,
    RefundsAndLimits, Scope, TokenSecret, config_reference,
};
use tollgate_rules::{AmbiguousPaths, OnMissing, OnNoRule, PathCase};

#[test]
fn fields_for_envoy_and_redis_clients_are_read() {
    let config = Config::from_yaml(include_str!("every_field.yaml")).unwrap();
    assert_eq!(config.listen.grpc.to_string(), "127.0.0.1:0");
    assert_eq!(config.listen.resp.to_string(), "unix:run/resp");
    let envoy = &config.envoy;
    assert_eq!(envoy.charging, Charging::Reference);
    assert_eq!(envoy.on_store_error, FailureMode::Deny);
    assert_eq!(config.throttle_on_store_error, FailureMode::Allow);
    assert!(envoy.response_headers && envoy.dynamic_metadata);
    assert!(envoy.shadow && envoy.reference_metrics);
    assert_eq!(envoy.refunds_and_limits, RefundsAndLimits::All);
    let compare = envoy.compare.as_ref().unwrap();
    assert_eq!(compare.uri, "http://old:8081");
    assert_eq!(compare.timeout, Duration::from_millis(250));
    let xds = envoy.xds.as_ref().unwrap();
    assert_eq!((&*xds.server, &*xds.node_id), ("xds:18000", "here"));
    let tls = xds.tls.as_ref().unwrap();
    assert!(envoy.config.len() == 2 && tls.ca.is_some() && tls.key.is_some());
    assert_eq!((config.limits.pipeline, config.limits.connection_age.as_secs()), (100, 3_600));
}

#[test]
fn every_field_of_a_token_is_read() {
    let config = Config::from_yaml(include_str!("every_field.yaml")).unwrap();
    let [gateway, ops, hashed, mesh] = &config.tokens[..] else { panic!("{:?}", config.tokens) };
    assert_eq!(gateway.secret, TokenSecret::File("gateway.token".into()));
    assert_eq!(
        (&*gateway.scopes, &*gateway.policies),
        (&[Scope::Check][..], &["*".to_owned()][..])
    );
    assert_eq!(
        (&ops.secret, &*ops.name),
        (&TokenSecret::Text("s3cret:with-#-in-it".to_owned()), "ops")
    );
    assert_eq!(ops.scopes, [Scope::Operate, Scope::Read]);
    assert_eq!(ops.policies, ["api", "s*"]);
    let TokenSecret::Sha256([0x9f, 0x86, .., 0x0a, 0x08]) = hashed.secret else {
        panic!("{:?}", hashed.secret)
    };
    let name = "spiffe://example.org/gateway".to_owned();
    assert_eq!(mesh.secret, TokenSecret::Certificate(name));
}

#[test]
fn every_field_is_read() {
    let config = Config::from_yaml(include_str!("every_field.yaml")).unwrap();
    assert_eq!(config.namespace, "shop");
    assert_eq!(config.store.data.as_deref(), Some("state".as_ref()));
    assert_eq!(config.store.snapshot_interval, Duration::from_millis(1_500));
    assert_eq!(config.store.max_keys, 50_000);
    assert_eq!(config.store.max_bytes, 1 << 30);
    assert_eq!(config.store.table_full, tollgate::TableFull::Allow);
    assert_eq!(config.listen.http.to_string(), "[::1]:8088");
    assert_eq!(config.limits.key_bytes, 512);
    assert_eq!(config.limits.body, 16 * 1024);
    assert_eq!(config.limits.checks, 8);
    assert_eq!((config.limits.connections, config.limits.peer_connections), (100, 50));
    assert_eq!(config.limits.header_timeout, Duration::from_secs(5));
    assert_eq!(config.limits.idle, Duration::from_secs(60));
    assert_eq!((config.limits.output, config.limits.buffers), (64 * 1024, 8 * 1024 * 1024));
    assert_eq!(config.limits.write_timeout, Duration::from_secs(3));
    assert_eq!(config.drain.timeout, Duration::from_secs(3));
    assert_eq!(config.listen.metrics, Address::Unix("run/metrics".into()));
    assert_eq!(config.listen.hosts.len(), 2);
    let tls = config.listen.tls.as_ref().unwrap();
    assert_eq!((&*tls.cert, &*tls.key), ("tls/cert.pem".as_ref(), "tls/key.pem".as_ref()));
    assert_eq!(tls.client_ca.as_deref(), Some("tls/ca.pem".as_ref()));
    assert_eq!(config.operators, Operators::Loopback);
    assert_eq!(config.overrides_files[0].path, Path::new("vips.csv"));
    for (key, tier, limits) in [
        ("user:42", None, "10/s burst 20; 1000/h sliding by 1min"),
        ("user:42", Some("pro"), "100/s"),
        ("vip", Some("pro"), "100/s; 1000/min fixed"),
        ("bot-7", None, "1/s"),
    ] {
        let policy = config.policies.resolve("api", key.as_bytes(), tier).unwrap();
        assert_eq!(policy.to_string(), limits, "{key} {tier:?}");
    }
    let tracks: Vec<_> = config.tracks.keys().collect();
    assert_eq!(tracks, ["api"]);
    let track = &config.tracks["api"];
    assert_eq!((track.recent, track.usage, track.max_keys), (20, true, 5_000));
    assert_eq!((track.max_bytes, track.keep), (32 << 20, Duration::from_secs(7 * 86_400)));
    let timeline = track.timeline.unwrap();
    assert_eq!((timeline.interval, timeline.intervals), (tollgate::Micros::from_secs(60), 1_440));
    let [first, second] = &config.rules.rules[..] else { panic!("{:?}", config.rules) };
    let counts =
        [first.matches.paths.len(), first.matches.methods.len(), first.matches.hosts.len()];
    assert_eq!((counts, first.matches.headers.len(), first.checks.len()), ([2, 2, 1], 1, 2));
    assert_eq!((first.checks[1].cost.get(), first.checks[1].on_missing), (2, OnMissing::Skip));
    assert_eq!((second.checks[0].cost.get(), second.checks[0].on_missing), (0, OnMissing::Error));
    // By default, a client cannot pass by omitting its key.
    assert_eq!(first.checks[0].on_missing, OnMissing::Deny);
    assert_eq!((&*second.checks[0].policy, second.checks[0].tier.is_some()), ("sms", true));
    assert_eq!(config.rules.on_no_rule, OnNoRule::Deny);
    assert_eq!(config.rules.ambiguous_paths, AmbiguousPaths::Deny);
    assert_eq!(config.rules.path_case, PathCase::Insensitive);
    assert!(config.trusted_proxies.contains("10.1.2.3".parse().unwrap()));
    assert_eq!(config.ipv6_prefix.to_string(), "56");
    let jwt = config.jwt.as_ref().unwrap();
    assert_eq!((jwt.issuer.as_deref(), jwt.audience.as_deref()), (Some("me"), Some("you")));
    assert_eq!(
        (jwt.header.as_str(), jwt.leeway, jwt.keys.is_none(), jwt.require_exp),
        ("x-token", Duration::ZERO, true, false)
    );
    assert_eq!(config.headers, [HeaderStyle::Draft6, HeaderStyle::LegacyEpoch]);
    assert_eq!((config.privacy, config.drain.delay), (Privacy::Masked, Duration::ZERO));
    assert_eq!((config.log.level, config.log.format), (LogLevel::Debug, LogFormat::Json));
    assert!(!format!("{config:?}").contains("s3cret"));
    let api = config.policies.get("api").unwrap();
    assert_eq!(api.to_string(), "10/s burst 20; 1000/h sliding by 1min");
    assert_eq!((api.is_shadow(), api.max_keys()), (true, Some(1_000)));
    assert!(api.listed(b"health-check").is_some() && api.listed(b"bot-7").is_some());
    assert_eq!(config.policies.get("sms").unwrap().to_string(), "10/d log");
}

#[test]
fn every_field_of_a_redis_store_is_read() {
    let config = Config::from_yaml(include_str!("every_field_of_redis.yaml")).unwrap();
    let store = &config.store;
    assert_eq!((store.url.is_memory(), store.url.as_str()), (false, "rediss+cluster://u:secret@h"));
    assert_eq!((store.connections, store.deadline), (3, Duration::from_millis(5)));
    assert_eq!(store.connect_timeout, Duration::from_secs(2));
    assert_eq!((store.call_timeout, store.queue), (Duration::from_millis(200), 500));
    assert_eq!((store.batch, store.groups), (32, Some(256)));
    assert_eq!(store.request_id_horizon, Duration::from_secs(60));
    assert_eq!(store.address_map["10.0.0.5:6379"], "127.0.0.1:7001");
    assert_eq!(store.tls_server_name.as_deref(), Some("redis.example.com"));
    assert_eq!(store.ca.as_deref(), Some("ca.pem".as_ref()));
    assert_eq!(store.cert.as_deref(), Some("c.pem".as_ref()));
    assert_eq!(store.key.as_deref(), Some("k.pem".as_ref()));
    assert_eq!(store.username.as_deref(), Some("ann"));
    assert_eq!(store.password_file.as_deref(), Some("pw".as_ref()));
    assert!(!format!("{config:?}").contains("secret"));
    let answer = |name| config.policies.get(name).unwrap().on_store_error();
    let answers = ["a", "b", "c"].map(answer);
    assert_eq!(answers, [OnStoreError::Allow, OnStoreError::Local, OnStoreError::Deny]);
    let store = Config::from_yaml(include_str!("every_field_of_sentinels.yaml")).unwrap().store;
    assert_eq!(store.sentinel_username.as_deref(), Some("watch"));
    assert_eq!(store.sentinel_password_file.as_deref(), Some("pw".as_ref()));
}

#[test]
fn fields_for_another_kind_of_server_are_rejected() {
    for (url, field, value) in [
        ("redis://h", "address_map", "{ \"a:1\": \"b:1\" }"),
        ("redis+cluster://h", "sentinel_username", "u"),
        ("redis://h", "sentinel_password_file", "f"),
        ("redis+cluster://h", "tls_server_name", "n"),
    ] {
        let yaml = format!("store: {{ url: \"{url}\", {field}: {value} }}");
        let error = Config::from_yaml(&yaml).unwrap_err().to_string();
        let expected = format!("store.{field}: has no effect with store.url {url}; remove it");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn fields_without_effect_are_accepted_with_their_defaults() {
    for url in ["memory", "redis://h"] {
        let yaml = format!(
            "store: {{ url: \"{url}\", data: null, snapshot_interval: 5s, max_keys: 1000000, max_bytes: 256MiB, table_full: deny,
                      connections: 2, deadline: 15ms, connect_timeout: 1s, ca: null, cert: null, key: null,
                      username: null, password_file: null, call_timeout: 500ms, queue: 10000, batch: 64, groups: null,
                      request_id_horizon: 30s, tls_server_name: null, sentinel_username: null,
                      sentinel_password_file: null }}"
        );
        assert_eq!(Config::from_yaml(&yaml).unwrap().store.url.as_str(), url);
    }
}

#[test]
fn store_fields_are_checked_against_a_store_chosen_later() {
    let mut config = Config::from_yaml("store: { deadline: 5ms }").unwrap();
    let error = config.store.check().unwrap_err().to_string();
    assert!(error.starts_with("store.deadline: applies to Redis stores only"), "{error}");
    config.store.url = "redis://h".into();
    config.store.check().unwrap();
}

#[test]
fn omitted_fields_have_their_defaults() {
    for yaml in ["", "# nothing\n", "store: {}\n", "store:\n  data: null\nlimits:\n"] {
        let config = Config::from_yaml(yaml).unwrap();
        assert_eq!(config.listen.http.to_string(), "127.0.0.1:8080", "{yaml:?}");
        assert_eq!((config.store.max_keys, config.store.data), (1_000_000, None), "{yaml:?}");
        assert_eq!(config.policies.iter().count(), 0, "{yaml:?}");
    }
}

#[test]
fn errors_name_the_file() {
    let folder = tollgate_testkit::Folder::create();
    let file = folder.write("a.yaml", "policies:\n  api: { limits: [\"10/month\"] }\n");
    let error = Config::load(&file).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    let name = file.display();
    assert!(error.to_string().starts_with(&format!("{name}:2:19: policies.api.limits[0]: ")));
    let missing = Config::load(&file).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("{name}: cannot be read: ")), "{missing}");
}

#[test]
fn reference_page_is_up_to_date() {
    let page = config_reference();
    let file = "docs/configuration.md";
    tollgate_testkit::assert_up_to_date(file, &page, "tollgate-config", "config");
}
