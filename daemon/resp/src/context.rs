//! The state that commands are executed with: of the connection, of the batch, of one command.

use std::vec;

use tollgate::{Cost, Decision, Key, Policy};
use tollgate_config::Bounds;
use tollgate_engine::{
    Access, ActiveConfig, AuditRecord, Batch, Call, Digest, Engine, Principal, Remote, Surface,
};

use super::RespState;
use super::command::{Command, CommandCache};
use super::decision;
use super::deferred::DeferredChecks;
use super::failure::Failure;
use super::frames::{Args, OwnedArgs};
use super::pending::{KeyCount, PendingReply, ReplyFormat};
use super::reply_buffer::ReplyBuffer;
use super::throttle_policies::ThrottlePolicyCache;

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Session {
    /// Identifies the connection while the daemon runs.
    pub(super) id: u64,
    pub(super) name: String,
    /// The name and the version of the client library.
    pub(super) library: [String; 2],
    /// The token of the connection.
    pub(super) token: Option<Digest>,
    pub(super) transaction: Option<Transaction>,
    /// The commands that follow in the transaction being executed.
    pub(super) executing: vec::IntoIter<QueuedCommand>,
    pub(super) throttle_policies: ThrottlePolicyCache,
    pub(super) deferred: DeferredChecks,
    pub(super) command_cache: CommandCache,
    /// Whether the last command sent a wrong token, whose reply is delayed.
    pub(super) has_wrong_token: bool,
    /// Whether the connection ends once all replies are sent.
    pub(super) is_closing: bool,
    /// Whether it ends because of an error of the client.
    pub(super) is_broken: bool,
}

impl Session {
    pub(super) fn new(id: u64) -> Self {
        Session {
            id,
            name: String::new(),
            library: Default::default(),
            token: None,
            transaction: None,
            executing: vec::IntoIter::default(),
            throttle_policies: ThrottlePolicyCache::default(),
            deferred: DeferredChecks::default(),
            command_cache: CommandCache::default(),
            has_wrong_token: false,
            is_closing: false,
            is_broken: false,
        }
    }

    /// The authenticated client. Looked up for each batch: a reload may have removed the token.
    pub(super) fn principal<'a>(
        &self,
        remote: &Remote,
        access: &'a Access,
    ) -> Option<Principal<'a>> {
        // Redis clients send nothing that would reveal a proxy.
        let anonymous = access.anonymous(remote.peer, || true);
        anonymous.or_else(|| match (&self.token, &remote.certificate) {
            (Some(token), _) => access.find(token),
            (None, Some(certificate)) => access.of_certificate(certificate),
            (None, None) => None,
        })
    }

    /// The bytes of commands that wait for `EXEC`, or are being executed by it.
    pub(super) fn queued_bytes(&self) -> usize {
        // What a command takes besides its arguments.
        const COMMAND: usize = 128;
        let executing = self.executing.as_slice();
        let queued = self.transaction.as_ref();
        let commands = executing.len() + queued.map_or(0, |queued| queued.commands.len());
        let bytes: usize = executing.iter().map(|(_, args)| args.as_args().bytes()).sum();
        bytes + queued.map_or(0, |queued| queued.bytes) + commands * COMMAND
    }

    /// Closes the connection once all replies are sent, because of an error of the client.
    pub(super) fn close_broken(&mut self) {
        (self.is_closing, self.is_broken) = (true, true);
    }

    /// Clears what `RESET` clears: the name, the token and the transaction.
    pub(super) fn reset(&mut self) {
        (self.name, self.token, self.transaction) = (String::new(), None, None);
    }
}

/// The most bytes of a transaction, in multiples of `limits.body`.
const MAX_TRANSACTION_BODIES: usize = 16;

/// A command of a transaction, and its arguments.
pub(super) type QueuedCommand = (&'static Command, OwnedArgs);

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) commands: Vec<QueuedCommand>,
    bytes: usize,
    /// Whether a command could not be queued, so that none is executed.
    pub(super) has_errors: bool,
}

impl Transaction {
    /// Queues a command for `EXEC`.
    pub(super) fn queue(
        &mut self,
        command: &'static Command,
        args: Args<'_>,
        bounds: &Bounds,
    ) -> Result<(), Failure> {
        if self.has_errors {
            // `EXEC` will fail.
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(args.bytes());
        let max_bytes = bounds.body.saturating_mul(MAX_TRANSACTION_BODIES);
        if self.commands.len() >= bounds.pipeline || self.bytes > max_bytes {
            self.commands = Vec::new();
            let max = bounds.pipeline;
            return Err(Failure::bad(format!(
                "a transaction has at most {max} commands of {max_bytes} bytes in total; send \
                 several, or raise limits.pipeline or limits.body"
            )));
        }
        self.commands.push((command, OwnedArgs::new(args)));
        Ok(())
    }
}

/// The context of all commands of a batch.
#[derive(Debug)]
pub(super) struct BatchContext<'a> {
    pub(super) engine: &'a Engine,
    pub(super) state: &'a RespState,
    /// The configuration that was active when the batch arrived.
    pub(super) active: &'a ActiveConfig,
    pub(super) remote: &'a Remote,
    /// The authenticated client.
    pub(super) principal: Option<Principal<'a>>,
    pub(super) engine_batch: Batch<'a>,
    /// Calls that are executed once the batch is read, and their replies.
    pub(super) calls: Vec<Call<'static, 'a>>,
    pub(super) replies: Vec<PendingReply>,
    /// The checks of these calls.
    pending_checks: usize,
    /// The running count of a command with several keys.
    pub(super) count: KeyCount,
}

impl<'a> BatchContext<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        state: &'a RespState,
        active: &'a ActiveConfig,
        remote: &'a Remote,
        session: &Session,
    ) -> Self {
        BatchContext {
            engine,
            state,
            active,
            remote,
            principal: session.principal(remote, &active.access),
            engine_batch: Batch::new(engine, active, Surface::Resp),
            calls: Vec::new(),
            replies: Vec::new(),
            pending_checks: 0,
            count: KeyCount::default(),
        }
    }

    /// The authenticated client.
    #[inline]
    pub(super) fn principal(&self) -> Result<Principal<'a>, Failure> {
        self.principal.ok_or_else(Failure::unauthenticated)
    }

    /// About how many bytes the replies to the pending calls will have.
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending_checks.saturating_mul(decision::TYPICAL_LEN)
    }

    /// Begins the audit record of an operator's command.
    pub(super) fn audit(&self, operation: &'static str) -> AuditRecord<'a> {
        self.engine.audit(operation, self.principal, self.remote)
    }

    /// Executes the calls that wait for the end of the batch, and inserts their replies among the
    /// others.
    pub(super) async fn execute_pending(&mut self, out: &mut ReplyBuffer) {
        if self.calls.is_empty() {
            return;
        }
        let mut calls = std::mem::take(&mut self.calls);
        let pending = std::mem::take(&mut self.replies);
        let results = self.engine_batch.execute_all(&mut calls).await;
        let protocol = out.protocol;
        let written = out.take();
        let mut rest = &*written;
        let mut copied = 0;
        for ((call, reply), result) in calls.iter().zip(pending).zip(results) {
            let (before, after) = rest.split_at(reply.position - copied);
            out.raw(before);
            (rest, copied) = (after, reply.position);
            out.protocol = reply.protocol;
            let written = reply.format.write(self.active, call, result, &mut self.count, out);
            if let Err(failure) = written {
                out.error(failure.line());
            }
        }
        out.raw(rest);
        out.protocol = protocol;
    }
}

/// The context of one command.
#[derive(Debug)]
pub(super) struct CommandContext<'s, 'a> {
    pub(super) session: &'s mut Session,
    pub(super) batch: &'s mut BatchContext<'a>,
    pub(super) out: &'s mut ReplyBuffer,
    pub(super) args: Args<'s>,
    pub(super) command: &'static Command,
}

impl<'s, 'a> CommandContext<'s, 'a> {
    /// An argument that the arity of the command guarantees.
    #[inline]
    pub(super) fn arg(&self, index: usize) -> &'s [u8] {
        match self.args.get(index) {
            Some(arg) => arg,
            None => unreachable!("the arity of {} was checked", self.command.name),
        }
    }

    /// Validates a key.
    #[inline]
    pub(super) fn key(&self, bytes: &'s [u8]) -> Result<Key<'s>, Failure> {
        let max_len = self.batch.active.bounds.key_bytes;
        if bytes.len() > max_len {
            return Err(long_key(bytes.len(), max_len));
        }
        Key::new(bytes).map_err(|error| Failure::bad(error.to_string()))
    }

    /// Decides the checks that wait, and writes their replies.
    #[inline]
    pub(super) fn decide_deferred(&mut self) {
        self.session.deferred.decide(&mut self.batch.engine_batch, self.out);
    }

    /// Decides a plain check, if that needs no answer of the store. Checks that follow one for the store
    /// wait with it, so that they are decided in order.
    #[inline]
    pub(super) fn check_now(
        &mut self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        note: Option<&str>,
    ) -> Option<Decision> {
        if !self.batch.calls.is_empty() {
            return None;
        }
        self.batch.engine_batch.check(policy, key, cost, note)
    }

    /// Executes a call on the memory store at once. On another store, queues it for the end of the
    /// batch, where its reply is inserted.
    pub(super) fn submit(
        &mut self,
        mut call: Call<'_, 'a>,
        format: ReplyFormat,
    ) -> Result<(), Failure> {
        match self.batch.engine_batch.execute_now(&mut call) {
            Some(result) => {
                let active = self.batch.active;
                format.write(active, &call, result, &mut self.batch.count, self.out)
            }
            None => {
                let (position, protocol) = (self.out.len(), self.out.protocol);
                self.batch.pending_checks += call.checks.as_slice().len();
                self.batch.calls.push(call.into_owned());
                self.batch.replies.push(PendingReply { format, position, protocol });
                Ok(())
            }
        }
    }

    /// The command has too many or too few arguments.
    pub(super) fn wrong_arity(&self) -> Failure {
        self.command.wrong_arity()
    }
}

#[cold]
fn long_key(len: usize, max_len: usize) -> Failure {
    Failure::bad(format!("key has {len} bytes, more than the maximum of {max_len}; send a hash"))
}
