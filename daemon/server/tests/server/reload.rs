//! Reading the configuration again, under load: nothing fails, nothing is forgotten, and what
//! cannot be used changes nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::client::{Answer, Client};
use crate::daemon::Daemon;

/// How long a change may take to be seen.
const LONG: Duration = Duration::from_secs(30);

/// A folder with a configuration; it goes when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("tollgate.yaml")
    }

    fn other(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The ways in which a file is replaced.
#[derive(Clone, Copy, Debug)]
enum Way {
    Write,
    Rename,
    SwapLink,
}

const WAYS: [Way; 3] = [Way::Write, Way::Rename, Way::SwapLink];

impl Way {
    fn replace(self, folder: &Folder, text: &str, turn: usize) {
        let path = folder.path();
        match self {
            Way::Write => fs::write(path, text).unwrap(),
            Way::Rename => fs::rename(folder.other("next", text), path).unwrap(),
            Way::SwapLink => {
                let version = folder.other(&format!("version-{turn}"), text);
                let link = folder.0.join("link");
                symlink(version, &link).unwrap();
                fs::rename(link, path).unwrap();
            }
        }
    }
}

/// A configuration that can be told by the name of a policy. `kept` has another number each time.
fn good(turn: usize) -> String {
    format!(
        "policies:\n  kept: {{ limits: [\"{}/d fixed\"] }}\n  turn-{turn}: {{ limits: [1/s] }}\n",
        1_000_000 + turn
    )
}

fn bad(turn: usize) -> String {
    format!("policies:\n  turn-{turn}: {{ limits: [nonsense-{turn}] }}\n")
}

async fn used(client: &mut Client, key: usize) -> u64 {
    let body = format!(r#"{{"policy":"kept","key":"{key}"}}"#);
    let answer = client.post("/v1/peek", &body).await.unwrap();
    let number = |field: &str| -> u64 {
        let at = answer.body.split(&format!("\"{field}\":")).nth(1).unwrap();
        at.split([',', '}']).next().unwrap().parse().unwrap()
    };
    number("capacity") - number("remaining")
}

/// Asks until the answer is as it should be.
pub(crate) async fn until(client: &mut Client, path: &str, is_it: impl Fn(&Answer) -> bool) {
    let wait = async {
        loop {
            let answer = client.get(path).await.unwrap();
            if is_it(&answer) {
                return;
            }
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, wait).await.unwrap_or_else(|_| panic!("{path} never changed"));
}

async fn until_turn(client: &mut Client, turn: usize) {
    let path = format!("/v1/peek?policy=turn-{turn}&key=a");
    until(client, &path, |x| x.status == 200).await;
}

async fn until_refused(client: &mut Client, why: &str) {
    until(client, "/readyz?verbose", |x| x.status == 200 && x.body.contains(why)).await;
}

/// Checks its own key until it is told to stop; every answer must be 200. How many were.
async fn load(
    address: std::net::SocketAddr,
    key: usize,
    stop: Arc<AtomicBool>,
    all: Arc<AtomicU64>,
) -> u64 {
    let mut client = Client::connect(address).await;
    let body = format!(r#"{{"policy":"kept","key":"{key}"}}"#);
    let mut asked = 0;
    while !stop.load(Ordering::Relaxed) {
        let answer = client.post("/v1/check", &body).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        asked += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_reloads_fails_no_request_and_forgets_nothing() {
    const RELOADS: usize = 100;
    const CLIENTS: usize = 4;
    let folder = Folder::new("storm");
    fs::write(folder.path(), good(0)).unwrap();
    let daemon = Daemon::start_from(&folder.path()).await;
    let (stop, all) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|key| tokio::spawn(load(daemon.address, key, Arc::clone(&stop), Arc::clone(&all))))
        .collect();
    let mut client = daemon.connect().await;
    let (mut applied, mut refused) = (0, 0);
    for turn in 1..=RELOADS {
        let way = WAYS[turn / 3 % 3];
        let before = all.load(Ordering::Relaxed);
        if turn % 3 == 0 {
            way.replace(&folder, &bad(turn), turn);
            until_refused(&mut client, &format!("nonsense-{turn}")).await;
            refused += 1;
        } else {
            way.replace(&folder, &good(turn), turn);
            until_turn(&mut client, turn).await;
            applied += 1;
        }
        // Each meets the load.
        let met = async {
            while all.load(Ordering::Relaxed) == before {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, met).await.unwrap_or_else(|_| panic!("there is no load at turn {turn}"));
    }
    assert_eq!((applied, refused), (67, 33));
    stop.store(true, Ordering::Relaxed);
    for (key, load) in clients.into_iter().enumerate() {
        let asked = load.await.unwrap();
        assert_eq!(used(&mut client, key).await, asked, "key {key}");
    }
}

#[tokio::test]
async fn what_is_refused_changes_nothing_until_it_is_mended() {
    let folder = Folder::new("refused");
    fs::write(folder.path(), good(1)).unwrap();
    let daemon = Daemon::start_from(&folder.path()).await;
    let mut client = daemon.connect().await;
    until(&mut client, "/readyz?verbose", |x| x.body.contains("[+] configuration")).await;
    let restart = format!("{}listen: {{ http: 127.0.0.1:1 }}\n", good(2));
    let nothing = (String::new(), "it is empty");
    let table = good(2).replace("fixed\"] }", "fixed\"], max_keys: 9 }");
    let table = (table, "policies.kept.max_keys");
    for (text, why) in [(bad(2), "nonsense-2"), (restart, "listen.http"), table, nothing] {
        fs::write(folder.path(), text).unwrap();
        until_refused(&mut client, why).await;
        until_turn(&mut client, 1).await;
    }
    fs::remove_file(folder.path()).unwrap();
    until_refused(&mut client, "cannot be read").await;
    fs::write(folder.path(), good(3)).unwrap();
    until_turn(&mut client, 3).await;
    until(&mut client, "/readyz?verbose", |x| x.body.contains("[+] configuration")).await;
}

#[tokio::test]
async fn it_is_read_again_when_told_though_nothing_changed() {
    let folder = Folder::new("told");
    fs::write(folder.path(), good(1)).unwrap();
    let daemon = Daemon::start_from(&folder.path()).await;
    let mut client = daemon.connect().await;
    let read = daemon.reads();
    daemon.tell_to_reload().await;
    timeout(LONG, async {
        while daemon.reads() == read {
            sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .unwrap();
    until_turn(&mut client, 1).await;
}

#[tokio::test]
async fn a_file_that_is_named_for_the_first_time_may_be_mended_later() {
    let folder = Folder::new("named");
    fs::write(folder.path(), good(1)).unwrap();
    let daemon = Daemon::start_from(&folder.path()).await;
    let mut client = daemon.connect().await;
    until_turn(&mut client, 1).await;
    let named = good(2).replace("fixed\"] }", "fixed\"], overrides_file: more.csv }");
    fs::write(folder.path(), named).unwrap();
    until_refused(&mut client, "more.csv").await;
    until_turn(&mut client, 1).await;
    folder.other("more.csv", "key,limits\nvip,7/d fixed\n");
    until_turn(&mut client, 2).await;
    until(&mut client, "/v1/peek?policy=kept&key=vip", |x| x.body.contains("\"capacity\":7,"))
        .await;
    // From then on it is looked at by itself.
    folder.other("more.csv", "key,limits\nvip,8/d fixed\n");
    until(&mut client, "/v1/peek?policy=kept&key=vip", |x| x.body.contains("\"capacity\":8,"))
        .await;
    folder.other("more.csv", "key,limits\nvip,nonsense\n");
    until_refused(&mut client, "nonsense").await;
    until(&mut client, "/v1/peek?policy=kept&key=vip", |x| x.body.contains("\"capacity\":8,"))
        .await;
}
