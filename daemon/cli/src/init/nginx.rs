//! nginx.

use super::{DAEMON, File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "nginx",
    daemon: DAEMON,
    files: &[File { name: "nginx.conf", comment: "#", text: include_str!("nginx.conf") }],
};
