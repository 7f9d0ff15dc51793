//! Overrides on a real server, where processes with and without them share the keys.

use std::process::{Command, Stdio};
use std::time::Duration;

use tollgate::{Cost, Key, Limiter, Policies};
use tollgate_testkit::Server;

use crate::rows::overrides;

const KEY: &[u8] = b"vip";
const CHECKS: usize = 400;
/// Tells a process of this test where the server is, and its policies.
const URL: &str = "TOLLGATE_TEST_URL";
const BASE: &str = "TOLLGATE_TEST_BASE";
const OVERRIDE: &str = "TOLLGATE_TEST_OVERRIDE";

/// Base, override: none of them gives anything back while the test lasts.
const FORMS: &[(&str, &str)] = &[
    ("300/d fixed from-first", "500/d fixed from-first"),
    ("300/d log", "500/d log"),
    ("300/366d burst 300", "500/366d burst 500"),
    ("300/366d sliding", "500/366d sliding"),
    ("500/d log", "300/d log"),
];

async fn open(url: &str) -> Limiter {
    Limiter::builder().deadline(Duration::from_secs(5)).open(url).await.unwrap()
}

fn policies(base: &str, of_vip: Option<&str>) -> Policies {
    let mut policies = Policies::new();
    policies.define("api", base).unwrap();
    let rows: Vec<_> = of_vip.iter().map(|vip| ("vip", *vip)).collect();
    policies.set_overrides("api", &overrides(&rows)).unwrap();
    policies
}

/// Checks the key this often; how often it was admitted.
async fn admitted(limiter: &Limiter, policies: &Policies, checks: usize) -> u64 {
    let mut admitted = 0;
    for _ in 0..checks {
        let form = policies.resolve("api", KEY, None).unwrap();
        let key = Key::new(KEY).unwrap();
        let decision = limiter.check_cost(form, key, Cost::ONE).await.unwrap();
        assert!(!decision.degraded, "{decision:?}");
        admitted += u64::from(decision.allowed());
    }
    admitted
}

#[tokio::test]
async fn a_key_keeps_its_count_when_its_override_comes_and_when_it_goes() {
    let server = Server::start();
    let limiter = open(&server.url()).await;
    for (base, of_vip) in FORMS.iter().filter(|(_, x)| x.starts_with("500")) {
        server.command(&["FLUSHALL"]);
        let (without, with) = (policies(base, None), policies(base, Some(of_vip)));
        assert_eq!(admitted(&limiter, &without, 310).await, 300, "{base}");
        assert_eq!(admitted(&limiter, &with, 210).await, 200, "{base}: of 500 the 300 are used");
        assert_eq!(admitted(&limiter, &without, 10).await, 0, "{base}: nothing is forgotten");
    }
}

/// Not a test by itself: what each of two processes does.
#[tokio::test]
async fn one_of_two() {
    let Ok(url) = std::env::var(URL) else { return };
    let of_vip = std::env::var(OVERRIDE).ok();
    let policies = policies(&std::env::var(BASE).unwrap(), of_vip.as_deref());
    let admitted = admitted(&open(&url).await, &policies, CHECKS).await;
    println!("\nadmitted {admitted}");
}

/// As while a file of overrides reaches one daemon before the other.
#[test]
fn two_processes_with_and_without_the_override_admit_at_most_the_larger() {
    let server = Server::start();
    let program = std::env::current_exe().unwrap();
    for (base, of_vip) in FORMS {
        server.command(&["FLUSHALL"]);
        let running: Vec<_> = [None, Some(of_vip)]
            .into_iter()
            .map(|of_vip| {
                let mut process = Command::new(&program);
                process.args(["--exact", "redis::one_of_two", "--nocapture"]);
                process.env(URL, server.url()).env(BASE, base);
                process.envs(of_vip.map(|vip| (OVERRIDE, *vip)));
                process.stdout(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let together: u64 = running
            .into_iter()
            .map(|running| {
                let output = running.wait_with_output().unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success(), "{text}");
                let count = text.lines().find_map(|line| line.strip_prefix("admitted "));
                count.unwrap_or_else(|| panic!("no count: {text}")).parse::<u64>().unwrap()
            })
            .sum();
        // Each asks for more than the smaller form has, and both for more than the larger.
        assert!((300..=500).contains(&together), "{base} and {of_vip}: {together}");
    }
}
