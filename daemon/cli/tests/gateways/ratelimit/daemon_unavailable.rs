//! The failure mode of Envoy.

use tollgate_testkit::GatewayKind;

use super::check;
use super::setup::Setup;

/// After a restart of the daemon, requests are limited again.
#[test]
fn failure_mode_of_envoy_applies_while_the_daemon_is_unavailable() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    for (fails_closed, status) in [(false, 200), (true, 500)] {
        let mut setup = Setup::with("atomic", fails_closed);
        check(
            &setup,
            "
            /two who=a plan=basic => 200 0 of 1
            /two who=a plan=basic => 429 0 of 1
        ",
        );
        setup.daemon.kill();
        for _ in 0..3 {
            let answer = setup.ask("/two who=a plan=basic");
            assert_eq!(answer.status, status, "{answer:?}");
            assert_eq!(answer.header("x-ratelimit-limit"), None);
        }
        assert_eq!(setup.reached()[0], if fails_closed { 0 } else { 3 });
        // The state in memory is lost.
        setup.daemon.restart();
        wait_for_decision(&setup);
    }
}

/// Sends requests until one is denied: Envoy needs a moment to connect again.
fn wait_for_decision(setup: &Setup) {
    let is_limited = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        setup.ask("/two who=b plan=basic").status == 429
    });
    assert!(is_limited, "the daemon does not decide again");
}
