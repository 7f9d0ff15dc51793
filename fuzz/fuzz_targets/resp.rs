//! Any bytes of a client of Redis are answered without a panic, and alike wherever they are split.
//! The first byte says where.
//!
//! `cargo xtask fuzz resp`
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tollgate_server::{Config, RespReplay};
use tollgate_store::ManualClock;

/// Policies of every kind, and bounds that a few bytes reach.
const CONFIG: &str = r#"
limits: { pipeline: 8, body: 256, key_bytes: 32 }
policies:
  a: { limits: ["2/s"] }
  b: { limits: ["3/h fixed", "2/min log"] }
  q: { limits: ["1/s queue 2"] }
  s: { limits: ["2 concurrent lease 60s"] }
"#;

static PARSED: LazyLock<Config> =
    LazyLock::new(|| Config::from_yaml(CONFIG).expect("the configuration is one"));

fuzz_target!(|bytes: &[u8]| {
    let Some((split, bytes)) = bytes.split_first() else { return };
    let (mut whole, mut parts) = (replay(), replay());
    let said = whole.send(bytes);
    let mut said_in_parts = Vec::new();
    for part in bytes.chunks(usize::from(*split).max(1)) {
        if !parts.has_ended() {
            said_in_parts.extend(parts.send(part));
        }
    }
    assert_eq!(whole.has_ended(), parts.has_ended());
    assert_eq!(said.len(), said_in_parts.len());
    // Ids are drawn at random, and time goes on.
    let differs = [&b"_id"[..], b"uptime"];
    if !differs.iter().any(|it| said.windows(it.len()).any(|said| said == *it)) {
        assert_eq!(said.escape_ascii().to_string(), said_in_parts.escape_ascii().to_string());
    }
});

fn replay() -> RespReplay {
    let limiter = tollgate::MemoryLimiter::builder().clock(ManualClock::default()).max_keys(64).build();
    RespReplay::new(&PARSED, limiter).expect("there are no tokens")
}
