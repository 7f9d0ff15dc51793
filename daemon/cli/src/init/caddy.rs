//! Caddy.

use super::{DAEMON, File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Caddy",
    daemon: DAEMON,
    files: &[File { name: "Caddyfile", comment: "#", text: include_str!("Caddyfile") }],
};
