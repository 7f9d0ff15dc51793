//! Envoy: the rate limit service over gRPC and JSON, and its configuration from a control plane.

mod rls;
pub mod xds;

pub use rls::{Body, EnvoyState, GrpcConnection, RuleCounts, Stats, answer_json};
