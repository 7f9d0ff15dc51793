//! Reloads under load: no request fails, no count is lost, and an invalid configuration changes
//! nothing.

use std::fs;
use std::os::unix::fs::symlink;

use tollgate_testkit::Folder;

use super::Load;
use crate::support::client::Client;
use crate::support::daemon::Daemon;
use crate::support::{eventually, wait_for, wait_until_ready};

const CONFIG: &str = "tollgate.yaml";

/// Replaces the configuration: by a write, by renaming, or by swapping a symbolic link.
fn replace(directory: &Folder, text: &str, turn: usize) {
    let path = directory.join(CONFIG);
    match turn / 3 % 3 {
        0 => fs::write(path, text).unwrap(),
        1 => fs::rename(directory.write("next", text), path).unwrap(),
        _ => {
            let version = directory.write(&format!("version-{turn}"), text);
            let link = directory.join("link");
            symlink(version, &link).unwrap();
            fs::rename(link, path).unwrap();
        }
    }
}

/// A configuration with a policy named after the turn. The limit of `kept` differs in each turn.
fn valid(turn: usize) -> String {
    format!(
        "policies:\n  kept: {{ limits: [\"{}/d fixed\"] }}\n  turn-{turn}: {{ limits: [1/s] }}\n",
        1_000_000 + turn
    )
}

fn invalid(turn: usize) -> String {
    format!("policies:\n  turn-{turn}: {{ limits: [nonsense-{turn}] }}\n")
}

async fn start(yaml: &str) -> (Folder, Daemon, Client) {
    let directory = Folder::create();
    let daemon = Daemon::start_from_file(&directory.write(CONFIG, yaml)).await;
    let client = daemon.connect().await;
    (directory, daemon, client)
}

/// How much of the limit of `kept` a key has used.
async fn used(client: &mut Client, key: usize) -> u64 {
    let body = format!(r#"{{"policy":"kept","key":"{key}"}}"#);
    let response = client.post("/v1/peek", &body).await.unwrap();
    let number = |field: &str| -> u64 {
        let rest = response.body.split(&format!("\"{field}\":")).nth(1).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    };
    number("capacity") - number("remaining")
}

async fn wait_for_turn(client: &mut Client, turn: usize) {
    let path = format!("/v1/peek?policy=turn-{turn}&key=a");
    wait_for(client, &path, |response| response.status == 200).await;
}

async fn wait_for_vip_capacity(client: &mut Client, capacity: u32) {
    let expected = format!("\"capacity\":{capacity},");
    let path = "/v1/peek?policy=kept&key=vip";
    wait_for(client, path, |response| response.body.contains(&expected)).await;
}

/// Checks one key until the load is stopped. Every response must be 200. Returns their number.
async fn check_repeatedly(mut client: Client, key: usize, load: Load) -> u64 {
    let body = format!(r#"{{"policy":"kept","key":"{key}"}}"#);
    let mut responses = 0;
    while load.is_running() {
        let response = client.post("/v1/check", &body).await.unwrap();
        assert_eq!(response.status, 200, "{}", response.body);
        responses += 1;
        load.count_response();
    }
    responses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load_fail_no_request_and_keep_counts() {
    const RELOADS: usize = 100;
    let (directory, daemon, mut client) = start(&valid(0)).await;
    let load = Load::default();
    let mut clients = Vec::new();
    for key in 0..4 {
        let client = daemon.connect().await;
        clients.push(tokio::spawn(check_repeatedly(client, key, load.clone())));
    }
    let (mut applied, mut rejected) = (0, 0);
    for turn in 1..=RELOADS {
        let before = load.responses();
        if turn % 3 == 0 {
            replace(&directory, &invalid(turn), turn);
            wait_until_ready(&mut client, 200, &format!("nonsense-{turn}")).await;
            rejected += 1;
        } else {
            replace(&directory, &valid(turn), turn);
            wait_for_turn(&mut client, turn).await;
            applied += 1;
        }
        load.wait_for_response(before).await;
    }
    assert_eq!((applied, rejected), (67, 33));
    load.stop();
    for (key, task) in clients.into_iter().enumerate() {
        let responses = task.await.unwrap();
        assert_eq!(used(&mut client, key).await, responses, "key {key}");
    }
}

#[tokio::test]
async fn rejected_files_change_nothing_until_they_are_fixed() {
    let (directory, _daemon, mut client) = start(&valid(1)).await;
    wait_until_ready(&mut client, 200, "[+] configuration").await;
    let restart = format!("{}listen: {{ http: 127.0.0.1:1 }}\n", valid(2));
    let table = valid(2).replace("fixed\"] }", "fixed\"], max_keys: 9 }");
    for (text, reason) in [
        (invalid(2), "nonsense-2"),
        (restart, "listen.http"),
        (table, "policies.kept.max_keys"),
        (String::new(), "it is empty"),
    ] {
        directory.write(CONFIG, &text);
        wait_until_ready(&mut client, 200, reason).await;
        wait_for_turn(&mut client, 1).await;
    }
    fs::remove_file(directory.join(CONFIG)).unwrap();
    wait_until_ready(&mut client, 200, "cannot be read").await;
    directory.write(CONFIG, valid(3));
    wait_for_turn(&mut client, 3).await;
    wait_until_ready(&mut client, 200, "[+] configuration").await;
}

#[tokio::test]
async fn a_reload_request_reads_unchanged_files() {
    let (_directory, daemon, mut client) = start(&valid(1)).await;
    let reads = daemon.reads();
    daemon.reload().await;
    eventually("a reload", async || daemon.reads() > reads).await;
    wait_for_turn(&mut client, 1).await;
}

#[tokio::test]
async fn a_newly_referenced_file_may_be_fixed_later() {
    let (directory, _daemon, mut client) = start(&valid(1)).await;
    wait_for_turn(&mut client, 1).await;
    let yaml = valid(2).replace("fixed\"] }", "fixed\"], overrides_file: more.csv }");
    directory.write(CONFIG, &yaml);
    wait_until_ready(&mut client, 200, "more.csv").await;
    wait_for_turn(&mut client, 1).await;
    directory.write("more.csv", "key,limits\nvip,7/d fixed\n");
    wait_for_turn(&mut client, 2).await;
    wait_for_vip_capacity(&mut client, 7).await;
    // From now on the file itself is watched.
    directory.write("more.csv", "key,limits\nvip,8/d fixed\n");
    wait_for_vip_capacity(&mut client, 8).await;
    directory.write("more.csv", "key,limits\nvip,nonsense\n");
    wait_until_ready(&mut client, 200, "nonsense").await;
    wait_for_vip_capacity(&mut client, 8).await;
}
