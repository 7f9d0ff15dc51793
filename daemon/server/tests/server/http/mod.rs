//! The HTTP API.

pub(crate) mod access;
mod headers;
mod hostile;
mod hostile_http2;
mod operations;
mod protocol;
