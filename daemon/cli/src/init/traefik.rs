//! Traefik.

use super::{DAEMON, File, Recipe};

pub(super) const RECIPE: Recipe = Recipe {
    name: "Traefik",
    daemon: DAEMON,
    files: &[
        File { name: "traefik.yaml", comment: "#", text: include_str!("traefik.yaml") },
        File { name: "dynamic.yaml", comment: "#", text: include_str!("dynamic.yaml") },
    ],
};
