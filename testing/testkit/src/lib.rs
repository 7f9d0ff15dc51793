//! Real Redis and Valkey servers, real gateways and real clients, for tests.
//!
//! Each is started by the test that needs it, on free loopback ports and in a temporary folder of
//! its own; it is killed by its process id when it is dropped, and also when the process of the
//! test dies. The binary is `$REDIS_SERVER`, or else `redis-server` or `valkey-server` of the path.
//!
//! - [`Server`] is one server; [`Config`] says how it is set up, with TLS, passwords or else.
//! - [`Cluster`] is several, whose slots can move and whose primaries can fail.
//! - [`Sentinel`] is a primary and a replica that three sentinels watch.
//! - [`Proxy`] stands before a server and breaks connections at a chosen request.
//! - [`Gateway`] is nginx, Caddy, HAProxy or Envoy; [`Upstream`] is the application behind it.
//! - [`ClientKind`] is redis-cli, or Python or Node.js with clients that others wrote.
//! - [`Sweep`] tells what keys either holds, and which never expire.
//!
//! Whatever does not come up in time panics, and shows the server's log.
//!
//! # Example
//!
//! ```
//! use tollgate_testkit::{Reply, Server};
//!
//! let server = Server::with(|config| config.databases(2).line("hz 100"));
//! assert_eq!(server.command(&["SET", "k", "v"]), Reply::ok());
//! assert_eq!(server.keys_without_ttl("k"), ["k"]);
//! assert!(server.url().starts_with("redis://127.0.0.1:"));
//! ```

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "servers of tests: a failure to start one is the test's failure"
)]

mod client;
mod cluster;
mod config;
mod connection;
mod folder;
mod gateway;
mod generated;
mod guard;
mod port;
mod program;
mod proxy;
mod reply;
mod sentinel;
mod server;
mod sweep;
mod tls;
mod upstream;
mod wait;

pub use client::ClientKind;
pub use cluster::{Cluster, ClusterConfig, Failover, SLOTS, SlotMove, slot_of};
pub use config::Config;
pub use connection::Connection;
pub use gateway::{Gateway, GatewayKind};
pub use generated::assert_up_to_date;
pub use port::Port;
pub use proxy::Proxy;
pub use reply::Reply;
pub use sentinel::Sentinel;
pub use server::Server;
pub use sweep::Sweep;
pub use upstream::{Reached, Upstream};
