//! Limits that change while it runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::basic::folder;
use crate::client::{self, Client};
use crate::process::Folder;

const MORE: &str = "
domain: more
descriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]
";

/// Asks, without a hit, until the answer is this.
async fn wait_for(client: &mut Client, request: &str, expected: &str) {
    while client::ask(client, request).await != expected {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_added_holds_and_one_that_is_removed_does_not() {
    let folder = folder();
    let mut ratelimit = folder.start(&[("BACKEND_TYPE", "memory"), ("LOG_LEVEL", "info")]);
    let mut client = client::connect(ratelimit.grpc()).await;
    let peek = "more | k=v +0";
    assert_eq!(client::ask(&mut client, peek).await, "OK | OK");
    folder.limits("more.yaml", MORE);
    wait_for(&mut client, peek, "OK | OK 9/DAY 9").await;
    // One that is wrong is told of, and changes nothing.
    folder.limits("wrong.yaml", "domain: more\n");
    let said = ratelimit.hear("keeping the previous one");
    assert!(said.contains("wrong.yaml") && said.contains("duplicate domain 'more'"), "{said}");
    assert_eq!(client::ask(&mut client, peek).await, "OK | OK 9/DAY 9");
    fs::remove_file(folder.path().join("config/wrong.yaml")).unwrap();
    fs::remove_file(folder.path().join("config/more.yaml")).unwrap();
    wait_for(&mut client, peek, "OK | OK").await;
    // They are counted a moment after they hold: the first, and the one without the file. The one
    // with it is the first where it came before the daemon had looked for the first time.
    while ratelimit.stat("ratelimit.service.config_load_success") < 2 {
        tokio::task::yield_now().await;
    }
    assert!(ratelimit.stat("ratelimit.service.config_load_error") >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_swapped_leads_to_other_limits() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    for (version, limit) in [("one", 5), ("two", 7)] {
        fs::create_dir_all(at(version).join("ratelimit/config")).unwrap();
        let text = MORE.replace("requests_per_unit: 9", &format!("requests_per_unit: {limit}"));
        fs::write(at(version).join("ratelimit/config/more.yaml"), text).unwrap();
    }
    symlink("one", at("current")).unwrap();
    let ratelimit = folder.start(&[
        ("BACKEND_TYPE", "memory"),
        ("RUNTIME_ROOT", &at("current").display().to_string()),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
    ]);
    let mut client = client::connect(ratelimit.grpc()).await;
    let peek = "more | k=v +0";
    assert_eq!(client::ask(&mut client, peek).await, "OK | OK 5/DAY 5");
    symlink("two", at("next")).unwrap();
    fs::rename(at("next"), at("current")).unwrap();
    wait_for(&mut client, peek, "OK | OK 7/DAY 7").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_may_come_later_where_that_is_said() {
    let folder = Folder::new();
    let root = folder.path().join("later");
    let place = root.display().to_string();
    let later = [("BACKEND_TYPE", "memory"), ("RUNTIME_ROOT", &*place)];
    let (code, _, said) = folder.ends(&later);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("RUNTIME_ROOT") && said.contains("later/config"), "{said}");
    let forced = [&later[..], &[("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")]].concat();
    let ratelimit = folder.start(&forced);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::ask(&mut client, "more | k=v +0").await, "OK | OK");
    write_later(&root);
    wait_for(&mut client, "more | k=v +0", "OK | OK 9/DAY 9").await;
}

fn write_later(root: &Path) {
    fs::create_dir_all(root.join("config")).unwrap();
    fs::write(root.join("config/more.yaml"), MORE).unwrap();
}
