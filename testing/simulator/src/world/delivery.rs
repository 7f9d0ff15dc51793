//! Connections: packets between a client and a server, as TCP delivers them.
//!
//! The bytes of a direction arrive in order and once, or not at all because the connection is lost.
//! While a direction is blocked, its packets wait, as TCP sends them again until they arrive. After
//! [`USER_TIMEOUT`] without an acknowledgement, the client's end is lost and its packets with it.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use super::connection::{Connection, Direction, End, Packet, Peer};
use super::events::Event;
use super::state::State;
use crate::node::Session;

/// How long sent data may remain unacknowledged. The store sets it on its sockets.
const USER_TIMEOUT: Duration = Duration::from_secs(3);

impl State {
    /// Opens a connection to a host.
    pub(crate) fn connect(&mut self, client: usize, host: &str) -> Result<u64, ErrorKind> {
        let server = *self.names.get(host).ok_or(ErrorKind::NotFound)?;
        self.processes[server].stats.dials.push((self.now, client));
        self.last_connection += 1;
        let id = self.last_connection;
        let connection = Connection {
            client,
            server,
            is_open: false,
            has_shut_down: false,
            is_closed: false,
            inbox: VecDeque::new(),
            has_ended: false,
            failure: None,
            waker: None,
            to_client: Direction::default(),
            to_server: Direction::default(),
            unacknowledged_since: None,
            peer: None,
        };
        self.connections.insert(id, connection);
        self.send(id, End::Server, Packet::Open);
        Ok(id)
    }

    /// Closes the client's end for writing.
    pub(crate) fn shut_down(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_open && !connection.has_shut_down {
            connection.has_shut_down = true;
            self.send(id, End::Server, Packet::Close);
        }
    }

    /// Closes the client's end.
    pub(crate) fn close_client(&mut self, id: u64) {
        self.shut_down(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.is_closed = true;
        connection.waker = None;
        if connection.peer.is_none() {
            self.connections.remove(&id);
        }
    }

    /// Resets a connection from the server's end.
    pub(crate) fn reset_peer(&mut self, id: u64) {
        let peer = self.connections.get_mut(&id).and_then(|connection| connection.peer.take());
        if peer.is_some() {
            self.send(id, End::Client, Packet::Reset);
        }
    }

    /// Resets both ends of a connection. What has not arrived is lost.
    pub(crate) fn reset(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.to_client.held.clear();
        connection.to_server.held.clear();
        connection.peer = None;
        connection.failure.get_or_insert(ErrorKind::ConnectionReset);
        self.wakers.extend(connection.waker.take());
    }

    /// Closes the server's end.
    pub(crate) fn close_peer(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.peer = None;
        if connection.is_closed {
            self.connections.remove(&id);
        } else {
            self.send(id, End::Client, Packet::Close);
        }
    }

    /// Returns the connections that match, in the order in which they were opened.
    pub(crate) fn connections_where(&self, is_match: impl Fn(&Connection) -> bool) -> Vec<u64> {
        let matching = self.connections.iter().filter(|(_, connection)| is_match(connection));
        matching.map(|(id, _)| *id).collect()
    }

    /// Sends a packet, or several if the link splits them.
    pub(crate) fn send(&mut self, id: u64, to: End, packet: Packet) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let is_lost = connection.failure.is_some() && !matches!(packet, Packet::Reset);
        if to == End::Server && is_lost {
            return;
        }
        let link = &self.links[connection.client][connection.server];
        let direction = connection.direction(to);
        let mut schedule = |packet, rng: &mut fastrand::Rng| {
            let at = direction.last.max(self.now + link.delay(rng));
            direction.last = at;
            self.events.push(at, Event::Deliver { connection: id, to, packet });
        };
        match packet {
            Packet::Bytes(mut bytes) if link.splits => {
                while bytes.len() > 1 {
                    let rest = bytes.split_off(self.rng.usize(1..bytes.len().min(512)));
                    schedule(Packet::Bytes(bytes), &mut self.rng);
                    bytes = rest;
                }
                schedule(Packet::Bytes(bytes), &mut self.rng);
            }
            packet => schedule(packet, &mut self.rng),
        }
    }

    /// Delivers a packet, or holds it while the direction is blocked.
    pub(crate) fn deliver(&mut self, id: u64, to: End, packet: Packet) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let link = &self.links[connection.client][connection.server];
        let is_blocked = link.is_blocked(to);
        let needs_acknowledgement =
            to == End::Server && connection.is_open && (is_blocked || link.is_blocked(End::Client));
        if needs_acknowledgement && connection.unacknowledged_since.is_none() {
            connection.unacknowledged_since = Some(self.now);
            let at = self.now + USER_TIMEOUT;
            self.events.push(at, Event::CheckAcknowledged { connection: id });
        }
        if is_blocked {
            connection.direction(to).held.push_back(packet);
        } else {
            self.receive(id, to, packet);
        }
    }

    /// Delivers the packets that waited for a direction that is no longer blocked.
    pub(crate) fn release_held(&mut self, id: u64) {
        for to in [End::Server, End::Client] {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let link = &self.links[connection.client][connection.server];
            if !link.is_blocked(End::Server) && !link.is_blocked(End::Client) {
                connection.unacknowledged_since = None;
            }
            if !link.is_blocked(to) {
                for packet in std::mem::take(&mut connection.direction(to).held) {
                    self.receive(id, to, packet);
                }
            }
        }
    }

    /// Fails the client's end if data has been unacknowledged for too long.
    pub(crate) fn check_acknowledged(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let is_late = |since: Duration| self.now.saturating_sub(since) >= USER_TIMEOUT;
        if connection.unacknowledged_since.is_some_and(is_late) {
            connection.to_server.held.clear();
            connection.failure = Some(ErrorKind::TimedOut);
            self.wakers.extend(connection.waker.take());
        }
    }

    fn receive(&mut self, id: u64, to: End, packet: Packet) {
        match to {
            End::Client => self.receive_at_client(id, packet),
            End::Server => self.receive_at_server(id, packet),
        }
    }

    fn receive_at_client(&mut self, id: u64, packet: Packet) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_closed || connection.failure.is_some() {
            // The operating system answers for a socket that is gone.
            if !matches!(packet, Packet::Reset) {
                self.send(id, End::Server, Packet::Reset);
            }
            return;
        }
        match packet {
            Packet::Open => connection.is_open = true,
            Packet::Bytes(bytes) => connection.inbox.extend(bytes),
            Packet::Close => connection.has_ended = true,
            Packet::Reset if connection.is_open => {
                connection.failure = Some(ErrorKind::ConnectionReset);
            }
            Packet::Reset => connection.failure = Some(ErrorKind::ConnectionRefused),
        }
        self.wakers.extend(connection.waker.take());
    }

    fn receive_at_server(&mut self, id: u64, packet: Packet) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let server = connection.server;
        match (packet, &mut connection.peer) {
            (Packet::Open, _) => {
                // The operating system answers, even if the process is paused.
                if self.processes[server].is_crashed() || connection.is_closed {
                    return self.send(id, End::Client, Packet::Reset);
                }
                let session = Session { id, ..Session::default() };
                connection.peer = Some(Peer { session, ..Peer::default() });
                self.send(id, End::Client, Packet::Open);
            }
            (Packet::Bytes(bytes), Some(peer)) => peer.parser.push(&bytes),
            (Packet::Close, Some(peer)) => peer.has_ended = true,
            (Packet::Reset, Some(_)) => connection.peer = None,
            (Packet::Bytes(_), None) => return self.send(id, End::Client, Packet::Reset),
            (Packet::Close | Packet::Reset, None) => {}
        }
        if self.connections.get(&id).is_some_and(Connection::is_gone) {
            self.connections.remove(&id);
            return;
        }
        self.processes[server].ready.push_back(id);
        self.run_server(server);
    }
}
