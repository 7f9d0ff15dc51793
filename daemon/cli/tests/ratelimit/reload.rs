//! Changes of limits at run time.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::process::Signal;

use crate::basic::installation;
use crate::client::{self, Client};
use crate::installation::{Installation, get};

const MORE: &str = "
domain: more
descriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]
";

/// Repeats a request until it has this response.
async fn wait_for(client: &mut Client, request: &str, expected: &str) {
    while client::call(client, request).await != expected {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn added_and_removed_files_take_effect() {
    let installation = installation();
    let mut ratelimit = installation.start(&[("BACKEND_TYPE", "memory"), ("LOG_LEVEL", "info")]);
    let mut client = client::connect(ratelimit.grpc()).await;
    let peek = "more | k=v +0";
    assert_eq!(client::call(&mut client, peek).await, "OK | OK");
    installation.limits("more.yaml", MORE);
    wait_for(&mut client, peek, "OK | OK 9/DAY 9").await;
    // An invalid file is logged and changes nothing.
    installation.limits("wrong.yaml", "domain: more\n");
    let logged = ratelimit.read_log_until("keeping the previous one");
    assert!(logged.contains("wrong.yaml"), "{logged}");
    assert!(logged.contains("duplicate domain 'more'"), "{logged}");
    assert_eq!(client::call(&mut client, peek).await, "OK | OK 9/DAY 9");
    fs::remove_file(installation.path().join("config/wrong.yaml")).unwrap();
    fs::remove_file(installation.path().join("config/more.yaml")).unwrap();
    wait_for(&mut client, peek, "OK | OK").await;
    // Counters follow with a short delay. At least the first load and the one after the removal
    // count; the addition may be part of the first load.
    while ratelimit.stat("ratelimit.service.config_load_success") < 2 {
        tokio::task::yield_now().await;
    }
    assert!(ratelimit.stat("ratelimit.service.config_load_error") >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn skipped_files_are_reported_at_start_and_after_a_reload() {
    let installation = installation();
    installation.limits("more", MORE);
    let mut ratelimit = installation
        .start_with(&[("BACKEND_TYPE", "memory"), ("LOG_LEVEL", "info")], &["--json-api"]);
    let greeting = &ratelimit.daemon.greeting;
    assert!(greeting.contains("  limits            2 domains with 3 limits, from "), "{greeting}");
    let skipped = "config/more is skipped: its name does not end in .yaml or .yml; rename it";
    ratelimit.read_log_until(skipped);
    let (status, page) = get(ratelimit.http(), "/readyz?verbose");
    assert_eq!(status, 200);
    assert!(page.contains("[!] configuration: "), "{page}");
    // After the first reload, no change can be part of the start.
    ratelimit.daemon.signal(Signal::HUP);
    let logged = ratelimit.read_log_until("configuration reloaded");
    assert!(logged.contains("changed=\"no file\""), "{logged}");
    installation.limits("even-more.yaml", &MORE.replace("more", "even-more"));
    let logged = ratelimit.read_log_until("configuration reloaded");
    for part in ["domains=3", "descriptor_rules=4", "policies=0", "changed=\""] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
    ratelimit.read_log_until(skipped);
    installation.limits("even-more.yaml", &MORE.replace("more", "even-more").replace('9', "8"));
    let logged = ratelimit.read_log_until("configuration reloaded");
    assert!(logged.contains("config/even-more.yaml"), "{logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_symlink_reloads_the_limits() {
    let installation = Installation::new();
    let at = |name: &str| installation.path().join(name);
    for (version, limit) in [("one", 5), ("two", 7)] {
        fs::create_dir_all(at(version).join("ratelimit/config")).unwrap();
        let text = MORE.replace("requests_per_unit: 9", &format!("requests_per_unit: {limit}"));
        fs::write(at(version).join("ratelimit/config/more.yaml"), text).unwrap();
    }
    symlink("one", at("current")).unwrap();
    let ratelimit = installation.start(&[
        ("BACKEND_TYPE", "memory"),
        ("RUNTIME_ROOT", &at("current").display().to_string()),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
    ]);
    let mut client = client::connect(ratelimit.grpc()).await;
    let peek = "more | k=v +0";
    assert_eq!(client::call(&mut client, peek).await, "OK | OK 5/DAY 5");
    symlink("two", at("next")).unwrap();
    fs::rename(at("next"), at("current")).unwrap();
    wait_for(&mut client, peek, "OK | OK 7/DAY 7").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_directory_is_an_error_unless_it_may_start_without_limits() {
    let installation = Installation::new();
    let root = installation.path().join("later");
    let root_text = root.display().to_string();
    let later = [("BACKEND_TYPE", "memory"), ("RUNTIME_ROOT", &*root_text)];
    let (code, _, error) = installation.run(&later);
    assert_eq!(code, 2, "{error}");
    assert!(error.starts_with("error: RUNTIME_ROOT: "), "{error}");
    assert!(error.contains("later/config") && !error.contains("envoy.config"), "{error}");
    let forced = [&later[..], &[("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")]].concat();
    let ratelimit = installation.start(&forced);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::call(&mut client, "more | k=v +0").await, "OK | OK");
    write_later(&root);
    wait_for(&mut client, "more | k=v +0", "OK | OK 9/DAY 9").await;
}

fn write_later(root: &Path) {
    fs::create_dir_all(root.join("config")).unwrap();
    fs::write(root.join("config/more.yaml"), MORE).unwrap();
}
