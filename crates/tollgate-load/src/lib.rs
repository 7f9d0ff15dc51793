//! A load generator for rate limiters, which holds what they admit against their bound.

pub mod verify;
