//! The HTTP API.

pub(crate) mod access;
pub(crate) mod hostile;
mod operations;
mod origin;
mod protocol;
