//! HAProxy, which asks by a Lua action.

use super::{DAEMON, File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "HAProxy",
    daemon: DAEMON,
    files: &[
        File { name: "haproxy.cfg", comment: "#", text: include_str!("haproxy.cfg") },
        File { name: "tollgate.lua", comment: "--", text: include_str!("tollgate.lua") },
    ],
};
