//! Polling.

use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(2);
/// About half a minute. Counting polls needs no clock.
const POLLS: usize = 12_000;

/// Waits for an effect of a task in the background.
pub async fn wait_until(effect: &str, mut condition: impl AsyncFnMut() -> bool) {
    for _ in 0..POLLS {
        if condition().await {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    panic!("timed out waiting for {effect}");
}

/// Polls until `poll` returns a value; `None` after about half a minute.
pub fn until<T>(mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..POLLS {
        if let Some(value) = poll() {
            return Some(value);
        }
        thread::sleep(INTERVAL);
    }
    None
}
