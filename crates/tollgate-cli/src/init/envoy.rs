//! Envoy.

use super::{File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Envoy",
    files: &[File { name: "envoy.yaml", comment: "#", text: include_str!("envoy.yaml") }],
};
