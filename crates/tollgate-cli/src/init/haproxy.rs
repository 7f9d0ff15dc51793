//! HAProxy, which asks by a Lua action.

use super::{File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "HAProxy",
    files: &[
        File { name: "haproxy.cfg", comment: "#", text: include_str!("haproxy.cfg") },
        File { name: "tollgate.lua", comment: "--", text: include_str!("tollgate.lua") },
    ],
};
