//! Traefik.

use super::{File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Traefik",
    files: &[
        File { name: "traefik.yaml", comment: "#", text: include_str!("traefik.yaml") },
        File { name: "dynamic.yaml", comment: "#", text: include_str!("dynamic.yaml") },
    ],
};
