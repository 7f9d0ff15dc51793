//! Envoy's rate limit service.
