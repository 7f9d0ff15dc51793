//! The HTTP API.

pub(crate) mod access;
mod hostile;
mod operations;
mod protocol;
