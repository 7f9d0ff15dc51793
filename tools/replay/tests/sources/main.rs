//! From bytes of logs, and from synthetic traffic, to ordered events.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod access;
mod any_bytes;
mod csv;
mod describe;
mod detection;
mod generate;
mod input;
mod json;
mod order;
