//! Real Redis and Valkey servers, gateways and clients for tests.
//!
//! A test starts what it needs, on free loopback ports and in a temporary folder. The process is
//! killed when its value is dropped, and when the process of the test dies. The server binary is
//! `$REDIS_SERVER`, or by default `redis-server` or `valkey-server` on the path.
//!
//! - [`Server`] is one server; [`Config`] is its configuration, such as TLS and passwords.
//! - [`Cluster`] is a Redis cluster with operations to move slots and fail primaries.
//! - [`Network`] is a network of hosts for the nodes of a cluster, which loses or delays packets.
//! - [`Sentinel`] is a primary and a replica, monitored by three sentinels.
//! - [`Proxy`] forwards to a server and breaks connections at a chosen request.
//! - [`Gateway`] is nginx, Caddy, HAProxy or Envoy; [`Upstream`] is the application behind it.
//! - [`ClientKind`] is redis-cli, or Python or Node.js with third-party clients.
//! - [`Events`] records events of `tracing`.
//! - [`build_examples`] compiles the examples of the workspace.
//! - [`Sweep`] lists the keys of a server or cluster and their times to live.
//!
//! Every function panics if a server does not do what is needed in time; the message has its log.
//! It also panics if the server binary is missing, with the command to install it. A test whose
//! gateway or client is missing is skipped, except in CI for those that `cargo xtask test` installs
//! there.
//!
//! # Example
//!
//! ```
//! use tollgate_testkit::{Reply, Server};
//!
//! let server = Server::with(|config| config.line("hz 100"));
//! assert_eq!(server.command(&["SET", "k", "v"]), Reply::ok());
//! assert_eq!(server.keys_without_ttl("k"), ["k"]);
//! assert!(server.url().starts_with("redis://127.0.0.1:"));
//! ```

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a server that fails to start fails the test"
)]

mod child_guard;
mod client;
mod cluster;
mod config;
mod connection;
mod events;
mod examples;
mod folder;
mod gateway;
mod generated;
mod network;
mod port;
mod processes;
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
pub use cluster::{Cluster, SlotMove, slot_of};
pub use config::Config;
pub use connection::{Connection, encode};
pub use events::Events;
pub use examples::build_examples;
pub use folder::Folder;
pub use gateway::{Gateway, GatewayKind};
pub use generated::assert_up_to_date;
pub use network::Network;
pub use port::Port;
pub use processes::admitted_by_processes;
pub use proxy::Proxy;
pub use reply::Reply;
pub use sentinel::Sentinel;
pub use server::Server;
pub use sweep::Sweep;
pub use upstream::{Upstream, UpstreamRequest};
pub use wait::{until, wait_until};
