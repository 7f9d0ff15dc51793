//! The replacement for envoyproxy/ratelimit, as a process called `ratelimit`.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod basic;
mod client;
mod debug;
mod health;
mod image;
#[path = "../../../server/tests/server/xds/plane.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod plane;
mod process;
mod redis;
mod refused;
mod reload;
mod xds;
