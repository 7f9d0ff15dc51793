//! Envoy.

use super::{DAEMON, File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Envoy",
    daemon: DAEMON,
    files: &[File { name: "envoy.yaml", comment: "#", text: include_str!("envoy.yaml") }],
};
