//! Files of envoyproxy/ratelimit that change while the daemon runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::daemon::Daemon;
use crate::reload::{Folder, until};
use crate::rls::client::{Client, ask, connect};

/// How long a change may take to be seen.
const LONG: Duration = Duration::from_secs(30);

/// A directory of limits as Kubernetes mounts one: each file is a link through `..data`, which is
/// swapped for another version.
struct Mount {
    folder: Folder,
    version: usize,
}

impl Mount {
    /// With these files.
    fn new(name: &str, files: &[(&str, String)]) -> Self {
        let folder = Folder::new(name);
        fs::create_dir(folder.path().with_file_name("limits")).unwrap();
        fs::write(folder.path(), "envoy: { config: limits }\n").unwrap();
        let mut mount = Mount { folder, version: 0 };
        mount.swap(files);
        mount
    }

    fn limits(&self) -> PathBuf {
        self.folder.path().with_file_name("limits")
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

/// A file of one domain, in which `k` is limited to so many a day.
fn domain(name: &str, count: u32) -> String {
    let limit = format!("{{ unit: day, requests_per_unit: {count} }}");
    format!("domain: {name}\ndescriptors: [{{ key: k, rate_limit: {limit} }}]\n")
}

/// Two files of one version.
fn version(turn: u32) -> [(&'static str, String); 2] {
    [("a.yaml", domain("kept", 1_000_000)), ("b.yaml", domain("turn", 1_000 + turn))]
}

/// Asks until the answer is this one.
async fn until_says(client: &mut Client, request: &str, expected: &str) {
    let wait = async {
        loop {
            let said = ask(client, request).await;
            if said.starts_with(expected) {
                return;
            }
            sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = timeout(LONG, wait).await;
    waited.unwrap_or_else(|_| panic!("{request} never says {expected}"));
}

async fn until_turn(client: &mut Client, turn: u32) {
    until_says(client, "turn | k=v +0", &format!("OK | OK {}/DAY ", 1_000 + turn)).await;
}

/// Asks for its own key until it is told to stop; every answer must be that of its limit. How many
/// were.
async fn load(mut client: Client, key: u32, stop: Arc<AtomicBool>, all: Arc<AtomicU64>) -> u32 {
    let mut asked = 0;
    while !stop.load(Ordering::Relaxed) {
        let said = ask(&mut client, &format!("kept | k={key}")).await;
        asked += 1;
        let left = 1_000_000 - asked;
        assert!(said.starts_with(&format!("OK | OK 1000000/DAY {left} ")), "{said}");
        all.fetch_add(1, Ordering::Relaxed);
    }
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_swaps_fails_no_request_and_forgets_nothing() {
    const SWAPS: u32 = 50;
    let mut mount = Mount::new("mount-storm", &version(0));
    let daemon = Daemon::start_from(&mount.folder.path()).await;
    let (stop, all) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for key in 0..3 {
        let client = connect(&daemon).await;
        clients.push(tokio::spawn(load(client, key, Arc::clone(&stop), Arc::clone(&all))));
    }
    let mut client = connect(&daemon).await;
    let mut http = daemon.connect().await;
    for turn in 1..=SWAPS {
        let before = all.load(Ordering::Relaxed);
        if turn % 5 == 0 {
            let bad = format!("domain: turn\ndescriptors: [{{ key: '', value: {turn} }}]\n");
            mount.swap(&[("a.yaml", domain("kept", 1)), ("b.yaml", bad)]);
            until(&mut http, "/readyz?verbose", |x| {
                x.status == 200 && x.body.contains("descriptor has empty key")
            })
            .await;
            until_turn(&mut client, turn - 1).await;
        } else {
            mount.swap(&version(turn));
            until_turn(&mut client, turn).await;
        }
        // Each meets the load.
        let met = async {
            while all.load(Ordering::Relaxed) == before {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, met).await.unwrap_or_else(|_| panic!("there is no load at turn {turn}"));
    }
    stop.store(true, Ordering::Relaxed);
    for load in clients {
        assert!(load.await.unwrap() > 0);
    }
}

#[tokio::test]
async fn files_may_come_and_go_and_be_renamed() {
    let mount = Mount::new("mount-listing", &version(0));
    let limits = mount.limits();
    let daemon = Daemon::start_from(&mount.folder.path()).await;
    let mut client = connect(&daemon).await;
    let unknown = "OK | OK - 0 -";
    until_says(&mut client, "more | k=v", unknown).await;
    // From a name that is not read to one that is.
    fs::write(limits.join("more.part"), domain("more", 9)).unwrap();
    fs::rename(limits.join("more.part"), limits.join("more.yml")).unwrap();
    until_says(&mut client, "more | k=v +0", "OK | OK 9/DAY 9 ").await;
    fs::write(limits.join("more.yml"), domain("more", 8)).unwrap();
    until_says(&mut client, "more | k=v +0", "OK | OK 8/DAY 8 ").await;
    fs::rename(limits.join("more.yml"), limits.join("other.yaml")).unwrap();
    fs::write(limits.join("other.yaml"), domain("more", 7)).unwrap();
    until_says(&mut client, "more | k=v +0", "OK | OK 7/DAY 7 ").await;
    fs::remove_file(limits.join("other.yaml")).unwrap();
    until_says(&mut client, "more | k=v", unknown).await;
    until_turn(&mut client, 0).await;
}

#[tokio::test]
async fn what_is_refused_changes_nothing_until_it_is_mended() {
    let mut mount = Mount::new("mount-refused", &version(0));
    let limits = mount.limits();
    let daemon = Daemon::start_from(&mount.folder.path()).await;
    let (mut client, mut http) = (connect(&daemon).await, daemon.connect().await);
    until_turn(&mut client, 0).await;
    let empty = [("a.yaml", domain("kept", 2)), ("b.yaml", String::new())];
    let twice = [("a.yaml", domain("turn", 2)), ("b.yaml", domain("turn", 3))];
    for (files, why) in [(empty, "the file is empty"), (twice, "duplicate domain 'turn'")] {
        mount.swap(&files);
        until(&mut http, "/readyz?verbose", |x| x.status == 200 && x.body.contains(why)).await;
        until_turn(&mut client, 0).await;
    }
    // The whole directory goes, and another comes.
    let away = limits.with_file_name("away");
    fs::rename(&limits, &away).unwrap();
    until(&mut http, "/readyz?verbose", |x| x.body.contains("limits: cannot be read")).await;
    until_turn(&mut client, 0).await;
    let next = limits.with_file_name("next");
    fs::create_dir(&next).unwrap();
    fs::write(next.join("only.yaml"), domain("turn", 1_005)).unwrap();
    symlink("next", &limits).unwrap();
    until_turn(&mut client, 5).await;
    until(&mut http, "/readyz?verbose", |x| x.body.contains("[+] configuration")).await;
    // And is swapped for another one.
    let last = limits.with_file_name("last");
    fs::create_dir(&last).unwrap();
    fs::write(last.join("only.yaml"), domain("turn", 1_006)).unwrap();
    symlink("last", limits.with_file_name("link")).unwrap();
    fs::rename(limits.with_file_name("link"), &limits).unwrap();
    until_turn(&mut client, 6).await;
}
