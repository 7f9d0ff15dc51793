//! The HTTP API.

pub(crate) mod access;
mod hints;
pub(crate) mod hostile;
mod operations;
mod origin;
mod protocol;
mod usage;
