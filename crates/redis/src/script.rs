//! The Lua script, concatenated from one file per concern at build time.

use std::sync::OnceLock;

use sha1_smol::Sha1;

/// The text of the script.
pub(crate) const TEXT: &str = concat!(
    "#!lua\n",
    include_str!("../lua/arguments.lua"),
    include_str!("../lua/fast_path.lua"),
    // The general path is created on demand: each function that a call creates costs 50 ns.
    "local function general()\nlocal algorithms, rows, reserved = {}, {}, {}\nhashes, hashed_logs = hashes or {}, {}\n",
    include_str!("../lua/algorithms/token_bucket.lua"),
    include_str!("../lua/algorithms/fixed_window.lua"),
    include_str!("../lua/algorithms/sliding_window.lua"),
    include_str!("../lua/algorithms/sliding_log.lua"),
    include_str!("../lua/algorithms/concurrency.lua"),
    include_str!("../lua/key.lua"),
    include_str!("../lua/hash.lua"),
    include_str!("../lua/check.lua"),
    "local function create_operations()\n",
    include_str!("../lua/operations.lua"),
    include_str!("../lua/reservations.lua"),
    "end\n",
    include_str!("../lua/request_ids.lua"),
    include_str!("../lua/decide.lua"),
    "end\n",
    include_str!("../lua/main.lua"),
);

/// Returns the SHA-1 of the script, for `EVALSHA`.
pub(crate) fn sha1() -> &'static str {
    static SHA1: OnceLock<String> = OnceLock::new();
    SHA1.get_or_init(|| Sha1::from(TEXT).digest().to_string())
}
