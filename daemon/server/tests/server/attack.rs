//! The others while somebody attacks: they must not notice.

use std::cell::Cell;

use crate::daemon::Daemon;

/// What costs nothing, so that it is allowed however often it is asked.
const BODY: &str = r#"{"policy":"bucket","key":"o","cost":0}"#;

/// The others: a request on a new connection, and one on a connection that is kept.
pub(crate) async fn assert_others_are_served(daemon: &Daemon) {
    let mut kept = daemon.connect().await;
    for _ in 0..2 {
        let answer = kept.post("/v1/check", BODY).await;
        assert_eq!(answer.unwrap().status, 200);
    }
}

/// Attacks at least once, and until others were served often enough meanwhile: they ask without a
/// pause, on new and on kept connections, and each of their requests is answered.
pub(crate) async fn while_others_are_served(daemon: &Daemon, mut attack: impl AsyncFnMut()) {
    const OFTEN: u32 = 10;
    let mut kept = daemon.connect().await;
    let served = Cell::new(0);
    let attack = async {
        loop {
            attack().await;
            if served.get() >= OFTEN {
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
