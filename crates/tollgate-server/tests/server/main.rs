//! The daemon as its peers meet it: real sockets on a free port, decisions by a clock that stands
//! still.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod bad_input;
mod client;
mod config;
mod daemon;
mod hostile;
mod ids;
mod protocol;
mod redis;
mod rows;
mod stop;
mod verbs;
