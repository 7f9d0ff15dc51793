//! What every store must answer: rows of policy, time, verb, key and cost, each with its decision.

pub mod rows;
