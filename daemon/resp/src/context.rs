//! What commands are executed with.

use tollgate::Key;
use tollgate_engine::{ActiveConfig, AuditRecord, Batch, Call, Engine, Principal, Remote, Surface};

use super::RespState;
use super::command::Command;
use super::failure::Failure;
use super::frames::Args;
use super::pending::{KeyCount, PendingReply, ReplyFormat};
use super::reply_buffer::ReplyBuffer;
use super::session::Session;

/// The name in the audit of a client without a valid token.
const UNAUTHENTICATED: &str = "unauthenticated";

/// What all commands of a batch are executed with.
#[derive(Debug)]
pub(super) struct BatchContext<'a> {
    pub(super) engine: &'a Engine,
    pub(super) state: &'a RespState,
    /// The configuration that was active when the batch arrived.
    pub(super) active: &'a ActiveConfig,
    pub(super) remote: &'a Remote,
    /// The authenticated client.
    pub(super) principal: Option<Principal<'a>>,
    pub(super) batch: Batch<'a>,
    /// Calls that are executed once the batch is read, and their replies.
    pub(super) calls: Vec<Call<'static, 'a>>,
    pub(super) replies: Vec<PendingReply>,
    /// The count of a command with several keys so far.
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
            batch: Batch::new(engine, active, Surface::Resp),
            calls: Vec::new(),
            replies: Vec::new(),
            count: KeyCount::default(),
        }
    }

    /// The authenticated client.
    #[inline]
    pub(super) fn principal(&self) -> Result<Principal<'a>, Failure> {
        self.principal.ok_or_else(Failure::unauthenticated)
    }

    /// Begins the audit record of an operator's command.
    pub(super) fn audit(&self, operation: &'static str) -> AuditRecord<'a> {
        let name = self.principal.map_or(UNAUTHENTICATED, |principal| principal.name());
        self.engine.audit(operation, name, self.remote)
    }
}

/// What one command is executed with.
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

    /// Executes a call on the memory store at once. On another store, queues it for the end of the
    /// batch, where its reply is inserted.
    pub(super) fn submit(
        &mut self,
        mut call: Call<'_, 'a>,
        format: ReplyFormat,
    ) -> Result<(), Failure> {
        match self.batch.batch.execute_now(&mut call) {
            Some(result) => format.write(&call, result, &mut self.batch.count, self.out),
            None => {
                let (position, protocol) = (self.out.len(), self.out.protocol);
                self.batch.calls.push(call.into_owned());
                self.batch.replies.push(PendingReply { format, position, protocol });
                Ok(())
            }
        }
    }

    /// The command has too many or too few arguments.
    pub(super) fn wrong_arity(&self) -> Failure {
        wrong_arity(self.command)
    }
}

#[cold]
fn long_key(len: usize, max_len: usize) -> Failure {
    Failure::bad(format!("key has {len} bytes, more than the maximum of {max_len}; send a hash"))
}

/// The command has too many or too few arguments.
pub(super) fn wrong_arity(command: &Command) -> Failure {
    let usage = super::reference::usage(command);
    let name = command.name;
    Failure::bad(format!("wrong number of arguments for '{name}' command; usage: {usage}"))
}
