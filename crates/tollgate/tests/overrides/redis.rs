//! Overrides on a real server that processes with and without them share.

use std::time::Duration;

use tollgate::{Cost, Key, Limiter, Policies};
use tollgate_testkit::{Server, admitted_by_processes};

use crate::rows::overrides;

const KEY: &[u8] = b"vip";
const CHECKS: usize = 400;
/// Environment variables that pass the URL and the policies to a child process.
const URL: &str = "TOLLGATE_TEST_URL";
const BASE: &str = "TOLLGATE_TEST_BASE";
const OVERRIDE: &str = "TOLLGATE_TEST_OVERRIDE";

/// Base and override limits; none recovers during the test.
const LIMITS: &[(&str, &str)] = &[
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

/// Checks the key and returns how often it was admitted.
async fn count_admitted(limiter: &Limiter, policies: &Policies, checks: usize) -> u64 {
    let mut admitted = 0;
    for _ in 0..checks {
        let variant = policies.resolve("api", KEY, None).unwrap();
        let key = Key::new(KEY).unwrap();
        let decision = limiter.check_cost(variant, key, Cost::ONE).await;
        assert!(!decision.degraded, "{decision:?}");
        admitted += u64::from(decision.allowed);
    }
    admitted
}

#[tokio::test]
async fn a_key_keeps_its_usage_when_an_override_is_added_or_removed() {
    let server = Server::start();
    let limiter = open(&server.url()).await;
    for (base, of_vip) in LIMITS.iter().filter(|(_, x)| x.starts_with("500")) {
        server.command(&["FLUSHALL"]);
        let (without, with) = (policies(base, None), policies(base, Some(of_vip)));
        assert_eq!(count_admitted(&limiter, &without, 310).await, 300, "{base}");
        assert_eq!(
            count_admitted(&limiter, &with, 210).await,
            200,
            "{base}: 300 of the 500 are used"
        );
        assert_eq!(count_admitted(&limiter, &without, 10).await, 0, "{base}: the usage stays");
    }
}

/// Not a test by itself: the body of each child process.
#[tokio::test]
async fn one_of_two() {
    let Ok(url) = std::env::var(URL) else { return };
    let of_vip = std::env::var(OVERRIDE).ok();
    let policies = policies(&std::env::var(BASE).unwrap(), of_vip.as_deref());
    let admitted = count_admitted(&open(&url).await, &policies, CHECKS).await;
    println!("\nadmitted {admitted}");
}

/// The situation while one daemon has loaded an overrides file and another has not.
#[test]
fn two_processes_with_and_without_the_override_admit_at_most_the_larger() {
    let server = Server::start();
    let url = server.url();
    for (base, of_vip) in LIMITS {
        server.command(&["FLUSHALL"]);
        let without = vec![(URL, &*url), (BASE, *base)];
        let with = vec![(URL, &*url), (BASE, *base), (OVERRIDE, *of_vip)];
        let admitted = admitted_by_processes("redis::one_of_two", &[without, with]);
        // Each process checks more often than the smaller limit, and both more than the larger.
        assert!((300..=500).contains(&admitted), "{base} and {of_vip}: {admitted}");
    }
}
