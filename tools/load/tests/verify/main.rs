//! The verification never reports what the engine admits, and always reports one request more.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod detection;
mod known_traces;
mod soundness;
mod trace;
