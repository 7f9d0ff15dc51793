//! Reloads of envoyproxy/ratelimit configuration files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tollgate_testkit::Folder;

use super::{Load, domain};
use crate::envoy::client::{Client, call, connect, wait_for};
use crate::support::daemon::Daemon;
use crate::support::wait_until_ready;

/// A directory of limits as Kubernetes mounts one: each file is a link through `..data`, which is
/// swapped for another version.
struct Mount {
    directory: Folder,
    version: usize,
}

impl Mount {
    fn new(files: &[(&str, String)]) -> Self {
        let directory = Folder::create();
        fs::create_dir(directory.join("limits")).unwrap();
        directory.write("tollgate.yaml", "envoy: { config: limits }\n");
        let mut mount = Mount { directory, version: 0 };
        mount.swap(files);
        mount
    }

    fn limits(&self) -> PathBuf {
        self.directory.join("limits")
    }

    async fn start_daemon(&self) -> Daemon {
        Daemon::start_from_file(&self.directory.join("tollgate.yaml")).await
    }

    /// Replaces all files at once.
    fn swap(&mut self, files: &[(&str, String)]) {
        self.version += 1;
        let limits = self.limits();
        let version = format!("..version-{}", self.version);
        fs::create_dir(limits.join(&version)).unwrap();
        for (name, text) in files {
            fs::write(limits.join(&version).join(name), text).unwrap();
        }
        symlink(&version, limits.join("..next")).unwrap();
        fs::rename(limits.join("..next"), limits.join("..data")).unwrap();
        for (name, _) in files {
            let link = limits.join(name);
            if fs::symlink_metadata(&link).is_err() {
                symlink(format!("..data/{name}"), link).unwrap();
            }
        }
        let old = limits.join(format!("..version-{}", self.version - 1));
        if old.exists() {
            fs::remove_dir_all(old).unwrap();
        }
    }
}

/// The two files of a version.
fn version(turn: u32) -> [(&'static str, String); 2] {
    [("a.yaml", domain("kept", 1_000_000)), ("b.yaml", domain("turn", 1_000 + turn))]
}

async fn wait_for_turn(client: &mut Client, turn: u32) {
    wait_for(client, "turn | k=v +0", &format!("OK | OK {}/DAY ", 1_000 + turn)).await;
}

/// Sends requests for one key until the load is stopped. Every response must count down the limit.
/// Returns their number.
async fn call_repeatedly(mut client: Client, key: u32, load: Load) -> u32 {
    let mut responses = 0;
    while load.is_running() {
        let response = call(&mut client, &format!("kept | k={key}")).await;
        responses += 1;
        let expected = format!("OK | OK 1000000/DAY {} ", 1_000_000 - responses);
        assert!(response.starts_with(&expected), "{response}");
        load.count_response();
    }
    responses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_files_under_load_fails_no_request_and_keeps_counts() {
    const SWAPS: u32 = 50;
    let mut mount = Mount::new(&version(0));
    let daemon = mount.start_daemon().await;
    let load = Load::default();
    let mut clients = Vec::new();
    for key in 0..3 {
        let client = connect(&daemon).await;
        clients.push(tokio::spawn(call_repeatedly(client, key, load.clone())));
    }
    let (mut client, mut http) = (connect(&daemon).await, daemon.connect().await);
    for turn in 1..=SWAPS {
        let before = load.responses();
        if turn % 5 == 0 {
            let bad = format!("domain: turn\ndescriptors: [{{ key: '', value: {turn} }}]\n");
            mount.swap(&[("a.yaml", domain("kept", 1)), ("b.yaml", bad)]);
            wait_until_ready(&mut http, 200, "descriptor has empty key").await;
            wait_for_turn(&mut client, turn - 1).await;
        } else {
            mount.swap(&version(turn));
            wait_for_turn(&mut client, turn).await;
        }
        load.wait_for_response(before).await;
    }
    load.stop();
    for task in clients {
        assert!(task.await.unwrap() > 0);
    }
}

#[tokio::test]
async fn added_renamed_and_removed_files_are_applied() {
    let mount = Mount::new(&version(0));
    let limits = mount.limits();
    let daemon = mount.start_daemon().await;
    let mut client = connect(&daemon).await;
    let unknown = "OK | OK - 0 -";
    wait_for(&mut client, "more | k=v", unknown).await;
    // A rename from an ignored name to one that is read.
    fs::write(limits.join("more.part"), domain("more", 9)).unwrap();
    fs::rename(limits.join("more.part"), limits.join("more.yml")).unwrap();
    wait_for(&mut client, "more | k=v +0", "OK | OK 9/DAY 9 ").await;
    fs::write(limits.join("more.yml"), domain("more", 8)).unwrap();
    wait_for(&mut client, "more | k=v +0", "OK | OK 8/DAY 8 ").await;
    fs::rename(limits.join("more.yml"), limits.join("other.yaml")).unwrap();
    fs::write(limits.join("other.yaml"), domain("more", 7)).unwrap();
    wait_for(&mut client, "more | k=v +0", "OK | OK 7/DAY 7 ").await;
    fs::remove_file(limits.join("other.yaml")).unwrap();
    wait_for(&mut client, "more | k=v", unknown).await;
    wait_for_turn(&mut client, 0).await;
}

#[tokio::test]
async fn rejected_files_change_nothing_until_they_are_fixed() {
    let mut mount = Mount::new(&version(0));
    let limits = mount.limits();
    let daemon = mount.start_daemon().await;
    let (mut client, mut http) = (connect(&daemon).await, daemon.connect().await);
    wait_for_turn(&mut client, 0).await;
    let empty = [("a.yaml", domain("kept", 2)), ("b.yaml", String::new())];
    let twice = [("a.yaml", domain("turn", 2)), ("b.yaml", domain("turn", 3))];
    for (files, reason) in [(empty, "the file is empty"), (twice, "duplicate domain 'turn'")] {
        mount.swap(&files);
        wait_until_ready(&mut http, 200, reason).await;
        wait_for_turn(&mut client, 0).await;
    }
    // The directory is removed, a link to another one takes its place, and the link is swapped.
    fs::rename(&limits, limits.with_file_name("removed")).unwrap();
    wait_until_ready(&mut http, 200, "limits: cannot be read").await;
    wait_for_turn(&mut client, 0).await;
    for (name, turn) in [("next", 5), ("last", 6)] {
        let target = limits.with_file_name(name);
        fs::create_dir(&target).unwrap();
        fs::write(target.join("only.yaml"), domain("turn", 1_000 + turn)).unwrap();
        symlink(name, limits.with_file_name("link")).unwrap();
        fs::rename(limits.with_file_name("link"), &limits).unwrap();
        wait_for_turn(&mut client, turn).await;
        wait_until_ready(&mut http, 200, "[+] configuration").await;
    }
}
