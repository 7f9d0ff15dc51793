//! `tollgate bench` against daemons, a Redis server, and servers that misbehave.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "a mock server returns the real time")]

mod counts;
mod flags;
mod interrupted;
mod login;
mod mock;
mod page;
#[path = "../resp/process.rs"]
mod process;
mod stalled;
mod tool;
mod verification;
mod violations;
