//! The middleware on its own, and around real axum, hyper and tonic servers.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod address;
mod charging;
mod client;
mod concurrency;
mod denial;
mod events;
mod keys;
mod outage;
mod queue;
mod rules;
mod servers;
mod support;
