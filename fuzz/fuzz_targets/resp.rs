//! Sends arbitrary bytes of a Redis client, complete and in parts: there is no panic, and the
//! replies are the same. The first byte is the size of a part.
//!
//! `cargo xtask fuzz resp`
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tollgate_daemon::{Config, RespReplay};
use tollgate_state::ManualClock;

/// Policies of every kind, and low limits that short inputs reach.
const CONFIG: &str = r#"
limits: { pipeline: 8, body: 256, key_bytes: 32 }
policies:
  a: { limits: ["2/s"] }
  b: { limits: ["3/h fixed", "2/min log"] }
  q: { limits: ["1/s queue 2"] }
  s: { limits: ["2 concurrent lease 60s"] }
"#;

static PARSED: LazyLock<Config> =
    LazyLock::new(|| Config::from_yaml(CONFIG).expect("the configuration is valid"));

fuzz_target!(|bytes: &[u8]| {
    let Some((split, bytes)) = bytes.split_first() else { return };
    let (mut whole, mut parts) = (replay(), replay());
    let replies = whole.send(bytes);
    let mut replies_in_parts = Vec::new();
    for part in bytes.chunks(usize::from(*split).max(1)) {
        if !parts.has_ended() {
            replies_in_parts.extend(parts.send(part));
        }
    }
    assert_eq!(whole.has_ended(), parts.has_ended());
    assert_eq!(replies.len(), replies_in_parts.len());
    // Ids are random, and time advances.
    let varying = [&b"_id"[..], b"uptime"];
    if !varying.iter().any(|text| replies.windows(text.len()).any(|window| window == *text)) {
        assert_eq!(replies.escape_ascii().to_string(), replies_in_parts.escape_ascii().to_string());
    }
});

fn replay() -> RespReplay {
    let limiter =
        tollgate::MemoryLimiter::builder().clock(ManualClock::default()).max_keys(64).build();
    RespReplay::new(&PARSED, limiter).expect("no token file to read")
}
