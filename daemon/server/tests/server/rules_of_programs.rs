//! Rules that no file has said, but a program that runs the daemon: they are held to the same.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate::MemoryLimiter;
use tollgate_server::rules::{Match, Rule, RuleCheck, Rules, Template};
use tollgate_server::{Config, Listeners, run};

use crate::daemon::{Daemon, POLICIES};

/// Rules of which the second has these checks, of all requests together.
fn config(policies: &[&str]) -> Config {
    let check = |text: &&str| RuleCheck::new(text, Template::parse("all").unwrap());
    let rule = |policies: &[&str]| Rule {
        matches: Match::default(),
        checks: policies.iter().map(check).collect(),
    };
    let mut config = Config::from_yaml(POLICIES).unwrap();
    config.rules = Rules { rules: vec![rule(&["log"]), rule(policies)], ..Rules::default() };
    config
}

const BAD: [(&[&str], &str); 4] = [
    (&[], "rules[1].checks: write 1 to 16 checks"),
    (&["log"; 17], "rules[1].checks: write 1 to 16 checks"),
    (&["log", "lug"], "rules[1].checks[1].policy: there is no policy \"lug\""),
    (&["slots"], "rules[1].checks[0].policy: policy \"slots\" has a concurrent limit"),
];

#[tokio::test]
async fn the_daemon_does_not_start_with_rules_that_cannot_be_followed() {
    for (policies, why) in BAD {
        let limiter = MemoryLimiter::new();
        let started = run(config(policies), Listeners::default(), limiter, None, pending()).await;
        let error = started.unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
}

#[tokio::test]
async fn a_reload_to_them_is_refused() {
    let turn = Arc::new(AtomicUsize::new(0));
    let read = {
        let turn = Arc::clone(&turn);
        move || {
            let bad = turn.load(Ordering::Relaxed).checked_sub(1).map(|x| BAD[x].0);
            Ok(config(bad.unwrap_or(&["log"])))
        }
    };
    let daemon = Daemon::start_reading(read).await;
    for (index, (_, why)) in BAD.iter().enumerate() {
        for (now, expected) in [(index + 1, *why), (0, "[+] configuration ok")] {
            turn.store(now, Ordering::Relaxed);
            daemon.tell_to_reload().await;
            let told = timeout(Duration::from_secs(30), async {
                while !daemon
                    .connect()
                    .await
                    .get("/readyz?verbose")
                    .await
                    .unwrap()
                    .body
                    .contains(expected)
                {
                    sleep(Duration::from_millis(2)).await;
                }
            });
            told.await.unwrap_or_else(|_| panic!("nobody was told {expected}"));
        }
    }
}
