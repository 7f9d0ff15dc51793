//! Polling.

use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(2);
/// About half a minute. Counting polls needs no clock.
const POLLS: usize = 12_000;

/// Polls until `poll` returns a value; `None` after about half a minute.
pub(crate) fn until<T>(mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..POLLS {
        if let Some(value) = poll() {
            return Some(value);
        }
        thread::sleep(INTERVAL);
    }
    None
}
