//! nginx.

use super::{File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "nginx",
    files: &[File { name: "nginx.conf", comment: "#", text: include_str!("nginx.conf") }],
};
