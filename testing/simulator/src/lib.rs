//! A simulated network of Redis servers in virtual time.
//!
//! The store of `tollgate-redis` runs unchanged against simulated servers, on one thread. Time passes
//! only when every task waits, and one seed determines everything: which message arrives first, how
//! long it takes, and what a server answers. A failure can be repeated with its seed.
//!
//! - [`Simulation`] runs a test; [`World`] has the servers, the clients and the links between them.
//! - [`Server`] is a server, a node of a [`Cluster`] or a sentinel. It executes the commands and the
//!   script of the store, as Redis 7.0 does. Its methods cause faults, and count what it has done.
//! - [`Client`] is a machine on which stores run; [`Links`] are its connections to servers.
//!
//! A test causes faults when it wants, and sleeps in between.
//!
//! # Limits
//! Servers execute only the commands that the store uses, in version 2 of the protocol, and scripts
//! that begin with `#!lua` without flags. They have no access control lists, and do not evict keys.
//! Nothing is detected or decided automatically: a test promotes replicas and moves slots.
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use tollgate_redis::RedisStore;
//! use tollgate_simulator::Simulation;
//!
//! let connections = Simulation::new(7).run(async |world| {
//!     let server = world.start_server();
//!     let store = RedisStore::open(&server.url(), world.options()).unwrap();
//!     store.ready().await.unwrap();
//!     server.pause();
//!     tokio::time::sleep(Duration::from_secs(60)).await;
//!     server.resume();
//!     server.stats().accepted.len()
//! });
//! assert!(connections > 0);
//! ```

#![expect(clippy::expect_used, reason = "a simulation that cannot continue fails its test")]

mod client;
mod cluster;
mod commands;
mod keyspace;
mod links;
mod network;
mod node;
mod resp;
mod script;
mod server;
mod simulation;
mod slots;
mod trace;
mod world;

pub use client::{Client, Connection};
pub use cluster::{Cluster, SlotMove};
pub use links::{Links, Partition};
pub use node::Refusal;
pub use server::{Data, Server};
pub use simulation::{Simulation, World};
pub use trace::{ReplyFault, ScriptCall, ServerStats};
