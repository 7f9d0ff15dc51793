//! The script: static text, put together from one file a concern when this crate is built.

use std::sync::OnceLock;

use sha1_smol::Sha1;

/// What the server is given.
pub(crate) const TEXT: &str = concat!(
    "#!lua\n",
    include_str!("../lua/arguments.lua"),
    include_str!("../lua/plain.lua"),
    // All that is seldom needed is made only when it is: each function that a call makes costs it
    // a twentieth of a microsecond.
    "local function general()\nlocal algorithms, long_rows = {}, {}\n",
    include_str!("../lua/algorithms/meter.lua"),
    include_str!("../lua/algorithms/window.lua"),
    include_str!("../lua/algorithms/weighted.lua"),
    include_str!("../lua/algorithms/log.lua"),
    include_str!("../lua/algorithms/leases.lua"),
    include_str!("../lua/key.lua"),
    include_str!("../lua/check.lua"),
    "local function make_verbs()\n",
    include_str!("../lua/verbs.lua"),
    include_str!("../lua/reservations.lua"),
    "end\n",
    include_str!("../lua/request_ids.lua"),
    include_str!("../lua/decide.lua"),
    "end\n",
    include_str!("../lua/main.lua"),
);

/// The name by which a server that has loaded it knows it.
pub(crate) fn sha1() -> &'static str {
    static SHA1: OnceLock<String> = OnceLock::new();
    SHA1.get_or_init(|| Sha1::from(TEXT).digest().to_string())
}
