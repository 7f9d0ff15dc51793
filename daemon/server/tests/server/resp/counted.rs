//! What is counted of clients of Redis.

use super::{Talk, words};
use crate::daemon::Daemon;
use crate::metrics::scrape;

#[tokio::test]
async fn every_decision_is_counted_once_however_it_was_sent() {
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let asked = [
        "CL.THROTTLE k 1 1 60",
        "CL.THROTTLE k 1 1 60",
        "CL.THROTTLE k 1 1 60",
        "CL.THROTTLE k 1 1 60 3",
        "TOLLGATE.CHECK bucket k COST 2",
        "TOLLGATE.CHECK bucket k",
        "TOLLGATE.CHECK bucket k COST 3",
        "TOLLGATE.CHECK ghost k COST 2",
        "CL.THROTTLE l 5 1 60",
        "TOLLGATE.CHECK LIMIT 1/h k",
        "TOLLGATE.CHECK queue k AND log k",
        "TOLLGATE.TAKE log k",
        // None of these is a decision.
        "TOLLGATE.PEEK bucket k",
        "TOLLGATE.RESET pair k",
        "TTL k",
        "DEL k",
        "PING",
        "CL.THROTTLE k x 1 60",
        "TOLLGATE.CHECK nobody k",
    ];
    let sent: Vec<u8> = asked.iter().flat_map(|x| words(x)).collect();
    talk.send(&sent).await;
    for _ in asked {
        talk.reply().await;
    }
    let page = scrape(daemon.scraped, "").await.body;
    for (policy, answer, count) in [
        ("@throttle", "allowed", 3),
        ("@throttle", "denied", 1),
        ("@throttle", "never", 1),
        ("bucket", "allowed", 1),
        ("bucket", "denied", 1),
        ("bucket", "never", 1),
        ("ghost", "shadow_denied", 1),
        ("_inline", "allowed", 1),
        ("queue", "allowed", 1),
        ("log", "allowed", 2),
    ] {
        let labels = format!("{{policy=\"{policy}\",answer=\"{answer}\",surface=\"resp\"}}");
        let line = format!("tollgate_decisions_total{labels} {count}\n");
        assert!(page.contains(&line), "{line}\n{page}");
    }
    for line in [
        "tollgate_decision_duration_seconds_count{surface=\"resp\"} 12\n",
        "tollgate_audit_total{verb=\"reset\"} 2\n",
        "tollgate_connections{listener=\"resp\"} 1\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}
