//! What the engine admits is never a violation, and one more than it may admit always is.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod play;
mod rows;
mod sensitive;
mod sound;
