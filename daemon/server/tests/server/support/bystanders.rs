//! Other clients during an attack: they must be served as usual.

use std::cell::Cell;

use super::daemon::Daemon;

/// A check with cost 0, which is always allowed.
const BODY: &str = r#"{"policy":"bucket","key":"o","cost":0}"#;

/// Asserts that a new connection is served, and served again.
pub(crate) async fn assert_others_are_served(daemon: &Daemon) {
    let mut client = daemon.connect().await;
    for _ in 0..2 {
        assert_eq!(client.post("/v1/check", BODY).await.unwrap().status, 200);
    }
}

/// Repeats an attack until other clients have been served often enough meanwhile. They send requests
/// without a pause, on new and on kept connections, and each request must be answered.
pub(crate) async fn while_others_are_served(daemon: &Daemon, mut attack: impl AsyncFnMut()) {
    const ROUNDS: u32 = 10;
    let mut kept = daemon.connect().await;
    let served = Cell::new(0);
    let attack = async {
        loop {
            attack().await;
            if served.get() >= ROUNDS {
                return;
            }
        }
    };
    let others = async {
        loop {
            assert_eq!(kept.post("/v1/check", BODY).await.unwrap().status, 200);
            assert_others_are_served(daemon).await;
            served.set(served.get() + 1);
        }
    };
    tokio::select! { () = attack => {}, () = others => {} }
    assert_others_are_served(daemon).await;
}
