//! Execution: a process serves its connections, one command after the other.

use std::time::Duration;

use tollgate_testkit::Reply;

use super::connection::{End, Packet, Peer};
use super::events::Event;
use super::process::{Process, Status};
use super::state::State;
use crate::resp;
use crate::trace::{ReplyFault, ScriptCall};

const TOO_MANY_CLIENTS: &str = "ERR max number of clients reached";

impl State {
    /// Returns a server whose state is that of the current time.
    pub(crate) fn process(&mut self, server: usize) -> &mut Process {
        let process = &mut self.processes[server];
        process.advance_to(self.now);
        process
    }

    /// Executes commands until there are no more, or until one takes time.
    pub(crate) fn run_server(&mut self, server: usize) {
        loop {
            let process = &mut self.processes[server];
            if process.status != Status::Running {
                return;
            }
            let busy_until = process.busy_until;
            if busy_until > self.now {
                if process.runs_at != Some(busy_until) {
                    process.runs_at = Some(busy_until);
                    self.events.push(busy_until, Event::Run { server });
                }
                return;
            }
            let Some(id) = process.ready.front().copied() else { return };
            if !self.serve(server, id) {
                self.processes[server].ready.pop_front();
            }
        }
    }

    /// Accepts a connection or executes its next command; returns whether there may be more to do.
    fn serve(&mut self, server: usize, id: u64) -> bool {
        let process = &self.processes[server];
        let connection = self.connections.get_mut(&id);
        let Some(peer) = connection.and_then(|connection| connection.peer.as_mut()) else {
            return false;
        };
        if !peer.is_accepted {
            return self.accept(server, id);
        }
        match peer.parser.next(process.node.is_logged_in(&peer.session)) {
            Ok(Some(words)) => {
                self.execute(server, id, words);
                true
            }
            Ok(None) => {
                if peer.has_ended {
                    self.close_peer(id);
                }
                false
            }
            Err(error) => {
                self.refuse(id, error);
                false
            }
        }
    }

    fn accept(&mut self, server: usize, id: u64) -> bool {
        let is_other = |peer: &Peer| peer.is_accepted;
        let count = self.connections.values().filter(|connection| {
            connection.server == server && connection.peer.as_ref().is_some_and(is_other)
        });
        let process = &mut self.processes[server];
        if process.max_clients.is_some_and(|max| count.count() >= max) {
            process.stats.rejected += 1;
            self.trace.record(self.now, (Some(server), Some(id)), "rejected", b"");
            self.refuse(id, TOO_MANY_CLIENTS.to_owned());
            return false;
        }
        process.stats.accepted.push(self.now);
        let is_authenticated = process.node.login.is_none();
        self.trace.record(self.now, (Some(server), Some(id)), "accepted", b"");
        let connection = self.connections.get_mut(&id);
        if let Some(peer) = connection.and_then(|connection| connection.peer.as_mut()) {
            peer.is_accepted = true;
            peer.session.is_authenticated = is_authenticated;
        }
        true
    }

    /// Sends an error and closes the connection.
    fn refuse(&mut self, id: u64, error: String) {
        let mut bytes = Vec::new();
        resp::encode(&Reply::Error(error), &mut bytes);
        self.send(id, End::Client, Packet::Bytes(bytes));
        self.close_peer(id);
    }

    fn execute(&mut self, server: usize, id: u64, words: Vec<Vec<u8>>) {
        self.process(server);
        let process = &mut self.processes[server];
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(peer) = connection.peer.as_mut() else { return };
        let runs = process.node.script_runs;
        let (name, reply) = process.node.execute(&mut peer.session, &words);
        *process.stats.commands.entry(name).or_default() += 1;
        process.busy_until = self.now + process.execution_time;
        let (completed_at, client) = (process.busy_until, connection.client);
        let effects = std::mem::take(&mut process.node.effects);
        let mut bytes = Vec::new();
        resp::encode(&reply, &mut bytes);
        let mut fault = None;
        if process.node.script_runs > runs {
            process.stats.scripts += 1;
            let mut call = script_call(self.now, words, reply);
            if !call.keys.is_empty() {
                fault = process.reply_faults.pop_front();
            }
            (call.client, call.connection, call.fault) = (client, id, fault);
            process.calls.push(call);
        }
        self.trace.record(self.now, (Some(server), Some(id)), name, &bytes);
        self.replicate(server, effects);
        match fault {
            None => self.reply(id, bytes, completed_at),
            Some(ReplyFault::Delay(delay)) => self.reply(id, bytes, completed_at + delay),
            Some(ReplyFault::Cut) => self.reset_peer(id),
            Some(ReplyFault::Truncate) => {
                bytes.truncate(bytes.len() / 2);
                self.send(id, End::Client, Packet::Bytes(bytes));
                self.reset_peer(id);
            }
            Some(ReplyFault::Stall) => {
                let connection = self.connections.get_mut(&id);
                if let Some(peer) = connection.and_then(|connection| connection.peer.as_mut()) {
                    peer.is_stalled = true;
                }
            }
        }
    }

    /// Sends a reply at a time, and after all earlier replies of the connection.
    fn reply(&mut self, id: u64, bytes: Vec<u8>, at: Duration) {
        let connection = self.connections.get_mut(&id);
        let Some(peer) = connection.and_then(|connection| connection.peer.as_mut()) else { return };
        peer.replies_at = peer.replies_at.max(at);
        peer.pending_replies += 1;
        if peer.replies_at > self.now || peer.pending_replies > 1 {
            self.events.push(peer.replies_at, Event::Reply { connection: id, bytes });
        } else {
            self.send_reply(id, bytes);
        }
    }

    /// Sends a reply, unless the server has lost the connection since the command.
    pub(crate) fn send_reply(&mut self, id: u64, bytes: Vec<u8>) {
        let connection = self.connections.get_mut(&id);
        let Some(peer) = connection.and_then(|connection| connection.peer.as_mut()) else { return };
        peer.pending_replies -= 1;
        if !peer.is_stalled {
            self.send(id, End::Client, Packet::Bytes(bytes));
        }
    }
}

/// Describes the call of a script that was executed, so its words are valid.
fn script_call(at: Duration, words: Vec<Vec<u8>>, reply: Reply) -> ScriptCall {
    let count = words.get(2).and_then(|count| str::from_utf8(count).ok()?.parse().ok());
    let mut keys: Vec<_> = words.into_iter().skip(3).collect();
    let arguments = keys.split_off(count.unwrap_or(0));
    ScriptCall { at, client: 0, connection: 0, keys, arguments, reply, fault: None }
}
