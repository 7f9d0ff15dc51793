//! The files of each gateway.

use super::{File, Recipe};

/// The daemon's file for gateways that use HTTP.
const DAEMON: File =
    File { name: "tollgate.yaml", comment: "#", text: include_str!("tollgate.yaml") };

pub(super) const NGINX: Recipe = Recipe {
    name: "nginx",
    daemon: DAEMON,
    files: &[File { name: "nginx.conf", comment: "#", text: include_str!("nginx.conf") }],
};

pub(super) const CADDY: Recipe = Recipe {
    name: "Caddy",
    daemon: DAEMON,
    files: &[File { name: "Caddyfile", comment: "#", text: include_str!("Caddyfile") }],
};

pub(super) const TRAEFIK: Recipe = Recipe {
    name: "Traefik",
    daemon: DAEMON,
    files: &[
        File { name: "traefik.yaml", comment: "#", text: include_str!("traefik.yaml") },
        File { name: "dynamic.yaml", comment: "#", text: include_str!("dynamic.yaml") },
    ],
};

pub(super) const HAPROXY: Recipe = Recipe {
    name: "HAProxy",
    daemon: DAEMON,
    files: &[
        File { name: "haproxy.cfg", comment: "#", text: include_str!("haproxy.cfg") },
        File { name: "tollgate.lua", comment: "--", text: include_str!("tollgate.lua") },
    ],
};

pub(super) const ENVOY: Recipe = Recipe {
    name: "Envoy",
    daemon: DAEMON,
    files: &[File { name: "envoy.yaml", comment: "#", text: include_str!("envoy.yaml") }],
};

/// Envoy's rate limit filter, over gRPC.
pub(super) const ENVOY_RATELIMIT: Recipe = Recipe {
    name: "Envoy",
    daemon: File {
        name: "tollgate.yaml",
        comment: "#",
        text: include_str!("tollgate-ratelimit.yaml"),
    },
    files: &[File { name: "envoy.yaml", comment: "#", text: include_str!("envoy-ratelimit.yaml") }],
};
