//! From the bytes of logs, and from generated traffic, to events in the order of time.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod access;
mod any_bytes;
mod csv;
mod generate;
mod input;
mod json;
mod order;
mod recognize;
mod said;
