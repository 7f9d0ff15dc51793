//! What is said when it is ready.

use std::fmt;

use anyhow::Result;
use tollgate_server::{ListenAddress, Listener};

use crate::serve::Ready;

/// What there is to say.
#[derive(Debug)]
pub(super) struct Greeting<'a> {
    ready: &'a Ready<'a>,
    limits: &'a str,
    listeners: Vec<(&'static str, Option<ListenAddress>, &'static str)>,
}

impl<'a> Greeting<'a> {
    pub(super) fn of(ready: &'a Ready<'a>, limits: &'a str) -> Result<Self> {
        let value = ready.listeners;
        let at = |x: &Option<Listener>| x.as_ref().map(Listener::address).transpose();
        let listeners = vec![
            ("gRPC for Envoy", at(&value.grpc)?, ""),
            ("HTTP", at(&value.http)?, ", /json and /healthcheck"),
            ("debug", at(&value.debug)?, ", /rlconfig, /stats and /metrics"),
            ("metrics", at(&value.metrics)?, ""),
        ];
        Ok(Greeting { ready, limits, listeners })
    }
}

impl fmt::Display for Greeting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        writeln!(f, "tollgate {version} is ready, in the place of envoyproxy/ratelimit\n")?;
        for (name, address, about) in &self.listeners {
            match address {
                Some(address) => writeln!(f, "  {name:16}  {address}{about}")?,
                None => writeln!(f, "  {name:16}  off")?,
            }
        }
        let config = self.ready.config;
        let store = &config.store;
        if store.url.is_memory() {
            let most = store.max_keys;
            writeln!(f, "  store             memory, at most {most} keys: for one replica")?;
        } else {
            writeln!(f, "  store             {}, namespace {}", store.url, config.namespace)?;
        }
        if let Some(why) = &self.ready.away {
            writeln!(f, "                    away: {why}")?;
        }
        writeln!(f, "  limits            {}", self.limits)
    }
}
