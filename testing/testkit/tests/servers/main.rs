//! Each feature once, against the server that is installed.

#![expect(clippy::disallowed_methods, reason = "they measure how long a server takes")]

mod cluster;
mod gateway;
mod proxy;
mod sentinel;
mod standalone;
mod tls;
