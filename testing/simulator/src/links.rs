//! Links between clients and servers: latency, splitting of messages, and partitions.

use std::sync::Arc;
use std::time::Duration;

use crate::world::Shared;
use crate::world::link::Link;
use crate::world::state::State;

/// The directions of a link that a partition blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// Nothing arrives, in either direction.
    Both,
    /// Requests do not arrive.
    ToServer,
    /// Requests are executed, but replies do not arrive.
    ToClient,
}

/// The links between one or all clients and one or all servers. What is set applies to the links that
/// exist; new ones have the properties that were set with [`World::links`](crate::World::links).
#[derive(Debug)]
pub struct Links {
    world: Arc<Shared>,
    client: Option<usize>,
    server: Option<usize>,
}

impl Links {
    pub(crate) fn new(world: &Arc<Shared>, client: Option<usize>, server: Option<usize>) -> Self {
        Links { world: Arc::clone(world), client, server }
    }

    fn is_selected(&self, client: usize, server: usize) -> bool {
        self.client.is_none_or(|selected| selected == client)
            && self.server.is_none_or(|selected| selected == server)
    }

    /// Changes the properties, and records it in the trace.
    fn change(&self, state: &mut State, what: &str, change: impl Fn(&mut Link)) {
        let client = self.client.map(|client| format!("client {client}")).unwrap_or_default();
        state.trace.record(state.now, (self.server, None), what, client.as_bytes());
        for (client, links) in state.links.iter_mut().enumerate() {
            for (server, link) in links.iter_mut().enumerate() {
                if self.is_selected(client, server) {
                    change(link);
                }
            }
        }
        if self.client.is_none() && self.server.is_none() {
            change(&mut state.default_link);
        }
    }

    fn connections(&self, state: &State) -> Vec<u64> {
        state.connections_where(|connection| self.is_selected(connection.client, connection.server))
    }

    /// Sets how long each message takes: `base` plus a random part of `jitter`. Messages do not
    /// overtake each other. Default: no time. The clients run at whole milliseconds, so a message that
    /// arrives between them is read at the next.
    pub fn set_latency(&self, base: Duration, jitter: Duration) {
        self.world.with(|state| {
            self.change(state, "latency", |link| (link.latency, link.jitter) = (base, jitter));
        });
    }

    /// Sets whether messages are split at random bytes, and the parts arrive separately.
    pub fn set_splitting(&self, splits: bool) {
        self.world.with(|state| self.change(state, "splitting", |link| link.splits = splits));
    }

    /// Blocks directions silently: nothing arrives, and attempts to connect hang. Messages wait until
    /// [`unblock`](Self::unblock), as TCP sends them again; but a client drops its connection, and all
    /// that it sent, after 3 s without an acknowledgement. To lose messages earlier, reset the
    /// connections before.
    pub fn partition(&self, partition: Partition) {
        self.set_blocked(partition != Partition::ToServer, partition != Partition::ToClient);
    }

    /// Ends a partition.
    pub fn unblock(&self) {
        self.set_blocked(false, false);
    }

    fn set_blocked(&self, to_client: bool, to_server: bool) {
        self.world.with(|state| {
            let what = match (to_client, to_server) {
                (true, true) => "partition",
                (true, false) => "partition to client",
                (false, true) => "partition to server",
                (false, false) => "unblocked",
            };
            self.change(state, what, |link| {
                (link.is_blocked_to_client, link.is_blocked_to_server) = (to_client, to_server);
            });
            for id in self.connections(state) {
                state.release_held(id);
            }
        });
    }

    /// Resets all connections at once. Messages that have not arrived are lost.
    pub fn reset(&self) {
        self.world.with(|state| {
            self.change(state, "reset", |_| ());
            for id in self.connections(state) {
                state.reset(id);
            }
        });
    }
}
