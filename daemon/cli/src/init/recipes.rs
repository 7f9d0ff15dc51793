//! The files of each gateway.

use anyhow::{Context, Result};

use crate::arguments::Gateway;

/// The files of one gateway.
#[derive(Debug)]
pub(super) struct Recipe {
    /// The gateway's name.
    pub(super) name: &'static str,
    /// The daemon's file, then the gateway's.
    pub(super) files: &'static [File],
}

/// A file with placeholders for addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// The file `$name` with the text of `$source`, by default of the same name.
macro_rules! file {
    ($name:literal) => {
        file!($name, $name)
    };
    ($name:literal, $source:literal) => {
        File { name: $name, text: include_str!($source) }
    };
}

/// The daemon's file for gateways that use HTTP.
const HTTP: File = file!("tollgate.yaml");
/// The daemon's file for Envoy's rate limit filter.
const RATELIMIT: File = file!("tollgate.yaml", "tollgate-ratelimit.yaml");
/// The daemon's file for Envoy's rate limit quota filter.
const RLQS: File = file!("tollgate.yaml", "tollgate-rlqs.yaml");

impl Recipe {
    pub(super) fn new(gateway: Gateway) -> Self {
        let (name, files): (_, &'static [File]) = match gateway {
            Gateway::Nginx => ("nginx", &[HTTP, file!("nginx.conf")]),
            Gateway::Caddy => ("Caddy", &[HTTP, file!("Caddyfile")]),
            Gateway::Traefik => ("Traefik", &[HTTP, file!("traefik.yaml"), file!("dynamic.yaml")]),
            Gateway::Haproxy => ("HAProxy", &[HTTP, file!("haproxy.cfg"), file!("tollgate.lua")]),
            Gateway::Envoy => ("Envoy", &[HTTP, file!("envoy.yaml")]),
            Gateway::EnvoyRatelimit => {
                ("Envoy", &[RATELIMIT, file!("envoy.yaml", "envoy-ratelimit.yaml")])
            }
            Gateway::EnvoyRlqs => ("Envoy", &[RLQS, file!("envoy.yaml", "envoy-rlqs.yaml")]),
        };
        Recipe { name, files }
    }

    pub(super) fn file(&self, name: &str) -> Result<&File> {
        self.files.iter().find(|file| file.name == name).with_context(|| {
            let names: Vec<_> = self.files.iter().map(|file| file.name).collect();
            format!("{} has no file {name:?}; it has {}", self.name, names.join(", "))
        })
    }
}

impl File {
    /// The start of a comment.
    pub(super) fn comment(&self) -> &'static str {
        if self.name.ends_with(".lua") { "--" } else { "#" }
    }
}
