//! Which form of a policy decides for a key: rows, and a plain model.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod errors;
mod model;
#[cfg(feature = "redis")]
mod redis;
mod rows;
