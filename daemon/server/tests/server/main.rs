//! The daemon over real sockets, with a clock that the tests control.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod audit;
mod config;
mod envoy;
mod forward_auth;
mod http;
mod metrics;
mod openapi;
mod redis_store;
mod resp;
mod shutdown;
mod support;
mod tls;
mod unix;
mod xds;

/// Compares a generated file of the repository with its content.
fn assert_up_to_date(file: &str, expected: &str) {
    tollgate_testkit::assert_up_to_date(file, expected, "tollgate-server", "server");
}
