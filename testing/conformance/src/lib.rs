//! Conformance tests that every store must pass.
//!
//! - [`rows`]: tables of requests with the expected decisions.
//! - [`model`]: a reference implementation in plain arithmetic, written independently of the engine.
//! - [`properties`]: properties of random traces, for any [`system`].

pub mod model;
pub mod properties;
pub mod rows;
pub mod system;
