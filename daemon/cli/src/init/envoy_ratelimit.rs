//! Envoy, which asks by its rate limit filter.

use super::{File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Envoy",
    daemon: File {
        name: "tollgate.yaml",
        comment: "#",
        text: include_str!("tollgate-ratelimit.yaml"),
    },
    files: &[File { name: "envoy.yaml", comment: "#", text: include_str!("envoy-ratelimit.yaml") }],
};
