//! Metrics of the Redis protocol.

use super::{RespClient, encode_words};
use crate::metrics::{assert_values, decisions, page};
use crate::support::daemon::Daemon;

#[tokio::test]
async fn decisions_are_counted_once_for_every_command() {
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let commands = [
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
        // These are not decisions.
        "TOLLGATE.PEEK bucket k",
        "TOLLGATE.RESET pair k",
        "TTL k",
        "DEL k",
        "PING",
        "CL.THROTTLE k x 1 60",
        "TOLLGATE.CHECK missing k",
    ];
    let sent: Vec<u8> = commands.iter().flat_map(|command| encode_words(command)).collect();
    client.send(&sent).await;
    for _ in commands {
        client.read_reply().await;
    }
    let page = page(&daemon).await;
    for (policy, answer, count) in [
        ("@throttle", "allowed", "3"),
        ("@throttle", "denied", "1"),
        ("@throttle", "never", "1"),
        ("bucket", "allowed", "1"),
        ("bucket", "denied", "1"),
        ("bucket", "never", "1"),
        ("ghost", "shadow_denied", "1"),
        ("_inline", "allowed", "1"),
        ("queue", "allowed", "1"),
        ("log", "allowed", "2"),
    ] {
        assert_values(&page, &[(&decisions(policy, answer, "resp"), count)]);
    }
    assert_values(
        &page,
        &[
            ("tollgate_decision_duration_seconds_count{surface=\"resp\"}", "12"),
            ("tollgate_audit_total{verb=\"reset\"}", "2"),
            ("tollgate_connections{listener=\"resp\"}", "1"),
        ],
    );
}
