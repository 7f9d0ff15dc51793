//! Responses to clients while the daemon or its store is unavailable.

use tollgate_testkit::GatewayKind;

use super::check;
use super::stage::Stage;

/// Requests pass while the daemon is away, unless Envoy is told to refuse them; when it is back the
/// next one is decided.
#[test]
fn failure_mode_of_envoy_applies_without_a_decision() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    for (is_closed, status) in [(false, 200), (true, 500)] {
        let mut stage = Stage::with("atomic", is_closed);
        check(
            &stage,
            "
            /two who=a plan=basic => 200 0 of 1
            /two who=a plan=basic => 429 0 of 1
        ",
        );
        stage.daemon.kill();
        for _ in 0..3 {
            let answer = stage.ask("/two who=a plan=basic");
            assert_eq!(answer.status, status, "{answer:?}");
            assert_eq!(answer.header("x-ratelimit-limit"), None);
        }
        assert_eq!(stage.reached()[0], if is_closed { 0 } else { 3 });
        // Its memory is new.
        stage.daemon.start_again();
        until_decided(&stage);
    }
}

/// Asks until there is a decision: Envoy needs a moment to connect again.
fn until_decided(stage: &Stage) {
    let decided = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        stage.ask("/two who=b plan=basic").status == 429
    });
    assert!(decided, "nothing is decided again");
}
