//! Every feature against the installed server.

#![expect(clippy::disallowed_methods, reason = "they measure how long a server takes")]

mod cluster;
mod gateway;
mod proxy;
mod sentinel;
mod standalone;
mod tls;
