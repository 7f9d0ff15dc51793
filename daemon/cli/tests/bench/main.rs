//! `tollgate bench` against daemons, a Redis, and servers that do wrong.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "a server of a test tells the time")]

mod broken;
mod counts;
mod degraded;
mod flags;
mod interrupted;
mod login;
mod mock;
mod page;
#[path = "../resp/process.rs"]
mod process;
mod run;
mod stalled;
mod verified;
