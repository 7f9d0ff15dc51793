//! Rules from a program that embeds the daemon, which no configuration file has validated.

use std::future::pending;
use std::sync::{Arc, Mutex};

use tollgate::MemoryLimiter;
use tollgate_daemon::rules::{Match, Rule, RuleCheck, Rules, Template};
use tollgate_daemon::{Config, Listeners, run};

use crate::support::daemon::{Daemon, POLICIES};
use crate::support::wait_until_ready;

/// A configuration with two rules; the second has these checks, for all requests together.
fn config(policies: &[&str]) -> Config {
    let check = |policy: &&str| RuleCheck::new(policy, Template::parse("all").unwrap());
    let rule = |policies: &[&str]| Rule {
        matches: Match::default(),
        checks: policies.iter().map(check).collect(),
    };
    let mut config = Config::from_yaml(POLICIES).unwrap();
    config.rules = Rules { rules: vec![rule(&["log"]), rule(policies)], ..Rules::default() };
    config
}

const INVALID: [(&[&str], &str); 4] = [
    (&[], "rules[1].checks: expected 1 to 16 checks, found 0"),
    (&["log"; 17], "rules[1].checks: expected 1 to 16 checks, found 17"),
    (&["log", "lug"], "rules[1].checks[1].policy: there is no policy \"lug\""),
    (&["slots"], "rules[1].checks[0].policy: policy \"slots\" has a concurrent limit"),
];

#[tokio::test]
async fn the_daemon_does_not_start_with_invalid_rules() {
    for (policies, reason) in INVALID {
        let limiter = MemoryLimiter::new();
        let result = run(config(policies), Listeners::default(), limiter, None, pending()).await;
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[tokio::test]
async fn a_reload_with_invalid_rules_is_rejected() {
    let current = Arc::new(Mutex::new(config(&["log"])));
    let read = {
        let current = Arc::clone(&current);
        move || Ok(current.lock().unwrap().clone())
    };
    let daemon = Daemon::start_with_reader(read).await;
    let mut client = daemon.connect().await;
    for (policies, reason) in INVALID {
        for (policies, expected) in [(policies, reason), (&["log"], "[+] configuration ok")] {
            *current.lock().unwrap() = config(policies);
            daemon.reload().await;
            wait_until_ready(&mut client, 200, expected).await;
        }
    }
}
