//! Which variant of a policy decides for a key.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod errors;
mod model;
#[cfg(feature = "redis")]
mod redis;
mod rows;
