//! Waiting for what another process does.

use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(2);
/// About half a minute: what takes longer will not come. Counting polls needs no clock.
const POLLS: usize = 12_000;

/// Polls until there is an answer; nothing if there is none in time.
pub(crate) fn until<T>(mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..POLLS {
        if let Some(answer) = poll() {
            return Some(answer);
        }
        thread::sleep(PAUSE);
    }
    None
}
