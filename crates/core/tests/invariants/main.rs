//! Properties of every limit on random traces: bounds, exact retries, remaining use, free denials, and
//! changes of state, limits and time.
#![allow(clippy::unwrap_used, reason = "a test")]

mod bounds;
mod changes;
mod probes;
mod trace;
