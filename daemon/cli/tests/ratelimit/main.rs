//! The replacement for envoyproxy/ratelimit, as a process called `ratelimit`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test"
)]

mod basic;
mod client;
mod compare;
#[path = "../../../server/tests/server/xds/control_plane.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod control_plane;
mod debug;
mod health;
#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod http;
mod image;
mod installation;
mod peer;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod redis;
mod reload;
mod variables;
mod xds;
