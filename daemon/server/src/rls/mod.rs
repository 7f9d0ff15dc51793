//! Envoy's rate limit service: `envoy.service.ratelimit.v3`, with health and reflection beside it.
//!
//! A call comes in by `peer.rs`, which knows paths and nothing else, and `service.rs` says who asks.
//! From there on `answer.rs` leads: `asked.rs` finds what each descriptor is limited by, `batch.rs`
//! asks the store once for all of them, and `status.rs` puts each decision into Envoy's words.

mod answer;
mod asked;
mod batch;
mod body;
mod count;
mod headers;
mod health;
pub(crate) mod json;
mod metadata;
mod own;
mod patience;
mod peer;
mod reflection;
mod refusal;
mod service;
mod stats;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use self::answer::answer;
pub(crate) use self::peer::Peer;
pub(crate) use self::refusal::Refusal;
pub(crate) use self::stats::{RuleCounts, Stats};
