//! The daemon over real sockets, with a clock that the tests control.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod admin;
mod audit;
mod config;
mod envoy;
mod forward_auth;
mod http;
mod metrics;
mod openapi;
mod outage;
mod redis_store;
mod resp;
mod shutdown;
mod slots;
mod support;
mod tls;
mod unix;
mod xds;
