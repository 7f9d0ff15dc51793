//! `tollgate bench` against daemons, a Redis server, and servers that misbehave.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "a mock server returns the real time")]

mod arguments;
mod counts;
mod login;
mod mock;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod stalled;
mod tool;
mod verification;
