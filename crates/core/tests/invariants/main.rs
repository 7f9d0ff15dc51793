//! What must hold of every limit, whatever the trace: bounds, both sides of a retry, what remains,
//! that denials are free, and how decisions move with state, limits and time.
#![allow(clippy::unwrap_used, reason = "a test")]

mod bounds;
mod changes;
mod probes;
mod trace;
