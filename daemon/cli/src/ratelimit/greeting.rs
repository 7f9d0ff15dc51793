//! The text that is printed when the daemon is ready.

use std::fmt;

use anyhow::Result;
use tollgate_server::{ListenAddress, Listener};

use crate::serve::Ready;

#[derive(Debug)]
pub(super) struct Greeting<'a> {
    ready: &'a Ready<'a>,
    limits: &'a str,
    listeners: Vec<(&'static str, Option<ListenAddress>, &'static str)>,
}

impl<'a> Greeting<'a> {
    pub(super) fn new(ready: &'a Ready<'a>, limits: &'a str) -> Result<Self> {
        let listeners = ready.listeners;
        let address =
            |listener: &Option<Listener>| listener.as_ref().map(Listener::address).transpose();
        let rows = vec![
            ("gRPC for Envoy", address(&listeners.grpc)?, ""),
            ("HTTP", address(&listeners.http)?, ", /json and /healthcheck"),
            ("debug", address(&listeners.debug)?, ", /rlconfig, /stats and /metrics"),
            ("metrics", address(&listeners.metrics)?, ""),
        ];
        Ok(Greeting { ready, limits, listeners: rows })
    }
}

impl fmt::Display for Greeting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        writeln!(f, "tollgate {version} is ready, replacing envoyproxy/ratelimit\n")?;
        for (name, address, about) in &self.listeners {
            match address {
                Some(address) => writeln!(f, "  {name:16}  {address}{about}")?,
                None => writeln!(f, "  {name:16}  off")?,
            }
        }
        let config = self.ready.config;
        let store = &config.store;
        if store.url.is_memory() {
            let max_keys = store.max_keys;
            writeln!(f, "  store             memory, at most {max_keys} keys, for one replica")?;
        } else {
            writeln!(f, "  store             {}, namespace {}", store.url, config.namespace)?;
        }
        if let Some(error) = &self.ready.store_error {
            writeln!(f, "                    unavailable: {error}")?;
        }
        writeln!(f, "  limits            {}", self.limits)
    }
}
