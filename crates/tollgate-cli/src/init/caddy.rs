//! Caddy.

use super::{File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Caddy",
    files: &[File { name: "Caddyfile", comment: "#", text: include_str!("Caddyfile") }],
};
