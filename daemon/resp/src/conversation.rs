//! A connection without its socket: bytes in, replies out.

use super::command::{Command, Flag, Handler};
use super::commands::{find, suggest};
use super::context::{BatchContext, CommandContext, Session};
use super::failure::{Failure, ProtocolError};
use super::frames::{Args, Frame, FrameBounds, FrameParser};
use super::operation;
use super::reply_buffer::ReplyBuffer;

/// Replies of this length are sent before more commands are executed.
const FLUSH_LEN: usize = 256 * 1024;

impl Session {
    /// Executes the next command of the transaction that `EXEC` began, if there is one.
    #[inline]
    fn execute_queued(&mut self, batch: &mut BatchContext<'_>, out: &mut ReplyBuffer) -> bool {
        let Some((command, args)) = self.executing.next() else { return false };
        let args = args.as_args();
        CommandContext { session: self, batch, out, args, command }.execute();
        true
    }

    /// Executes a command, or queues it for its transaction.
    fn execute(&mut self, args: Args<'_>, batch: &mut BatchContext<'_>, out: &mut ReplyBuffer) {
        if let Err(failure) = self.try_execute(args, batch, out) {
            self.deferred.decide(&mut batch.engine_batch, out);
            if let Some(transaction) = &mut self.transaction {
                transaction.has_errors = true;
            }
            out.error(failure.line());
        }
    }

    fn try_execute(
        &mut self,
        args: Args<'_>,
        batch: &mut BatchContext<'_>,
        out: &mut ReplyBuffer,
    ) -> Result<(), Failure> {
        let Some(name) = args.get(0) else { unreachable!("a command has a name") };
        let Some(command) = self.command_cache.find(name, find) else {
            return Err(self.unknown_command(name, args, batch));
        };
        if batch.principal.is_none() && !command.has(Flag::NoAuth) {
            return Err(unauthenticated(command, batch));
        }
        if !command.accepts(args.len()) {
            return Err(command.wrong_arity());
        }
        match &mut self.transaction {
            Some(transaction) if !command.has(Flag::NotQueued) => {
                transaction.queue(command, args, &batch.active.bounds)?;
                out.simple("QUEUED");
            }
            _ => CommandContext { session: self, batch, out, args, command }.execute(),
        }
        Ok(())
    }

    #[cold]
    fn unknown_command(
        &mut self,
        name: &[u8],
        args: Args<'_>,
        batch: &BatchContext<'_>,
    ) -> Failure {
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            // A web page can make a browser send HTTP here. The commands in the body of such a
            // request must not be executed.
            tracing::debug!(peer = %batch.remote, "HTTP request on the RESP listener");
            self.close_broken();
            return Failure::bad("Protocol error: this is HTTP; send it to listen.http");
        }
        if batch.principal.is_none() {
            return Failure::unauthenticated();
        }
        const MAX_QUOTED_LEN: usize = 128;
        let prefix = |bytes: &[u8], max_len: usize| {
            bytes.split_at(bytes.len().min(max_len)).0.escape_ascii().to_string()
        };
        let mut shown = String::new();
        for arg in args.from(1) {
            if shown.len() >= MAX_QUOTED_LEN {
                break;
            }
            shown.push_str(&format!("'{}' ", prefix(arg, MAX_QUOTED_LEN - shown.len())));
        }
        let name_shown = prefix(name, MAX_QUOTED_LEN);
        let hint = suggest(name).unwrap_or_else(|| {
            "this is tollgate, not Redis; COMMAND LIST returns its commands".to_owned()
        });
        Failure::bad(format!(
            "unknown command '{name_shown}', with args beginning with: {shown}; {hint}"
        ))
    }
}

/// The failure of a command that needs a token. Counts and logs it; audits an operator's command.
#[cold]
fn unauthenticated(command: &Command, batch: &BatchContext<'_>) -> Failure {
    let failure = Failure::unauthenticated();
    batch.engine.report_unauthenticated(batch.remote);
    if let Some(operation) = command.audited_as {
        batch.audit(operation).fail(failure.is_denial, failure.detail());
    }
    failure
}

impl CommandContext<'_, '_> {
    /// Executes the command, and writes its error if it fails.
    #[inline]
    pub(super) fn execute(&mut self) {
        if let Err(failure) = self.try_execute() {
            self.decide_deferred();
            self.out.error(failure.line());
        }
    }

    #[inline]
    fn try_execute(&mut self) -> Result<(), Failure> {
        if !self.command.has(Flag::Deferring) {
            self.decide_deferred();
        }
        // Operators' commands are authorized where the audit record is.
        if !self.command.scopes.is_empty() && self.command.audited_as.is_none() {
            self.batch.principal()?.authorize(self.command.scopes, self.command.name)?;
        }
        match self.command.handler {
            Handler::Operation(spec) => operation::execute(self, spec),
            Handler::Function(function) => function(self),
        }
    }
}

/// The progress of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The length of the executed commands in bytes.
    pub(super) consumed: usize,
    /// Whether a complete command may be left.
    pub(super) has_more: bool,
}

/// A connection without its socket: bytes in, replies out.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) session: Session,
    parser: FrameParser,
}

impl Conversation {
    pub(super) fn new(id: u64) -> Self {
        Conversation { session: Session::new(id), parser: FrameParser::default() }
    }

    /// Executes the commands in `bytes`, up to the bounds of a batch, and until the replies have
    /// about `max_output` bytes or a token was wrong. `bytes` begins with the first command that was
    /// not executed.
    pub(super) fn execute(
        &mut self,
        bytes: &[u8],
        max_output: usize,
        batch: &mut BatchContext<'_>,
        out: &mut ReplyBuffer,
    ) -> Progress {
        let mut rest = bytes;
        let (body, flush_len) = (batch.active.bounds.body, max_output.min(FLUSH_LEN));
        let mut is_incomplete = false;
        for _ in 0..batch.active.bounds.pipeline {
            let deferred = &mut self.session.deferred;
            if deferred.is_full() || out.len() + deferred.reply_bytes() >= flush_len {
                deferred.decide(&mut batch.engine_batch, out);
            }
            let is_full = out.len() >= flush_len || batch.pending_bytes() >= max_output;
            if self.session.is_closing || self.session.has_wrong_token || is_full {
                break;
            }
            if self.session.execute_queued(batch, out) {
                continue;
            }
            let bounds = match batch.principal {
                Some(_) => FrameBounds::new(body),
                None => FrameBounds::unauthenticated(),
            };
            let len = match self.parser.next(rest, &bounds) {
                Ok(Frame::Incomplete) => {
                    is_incomplete = true;
                    break;
                }
                Ok(Frame::Empty(len)) => len,
                Ok(Frame::Command(len)) => {
                    self.session.execute(self.parser.args(rest), batch, out);
                    len
                }
                Err(ProtocolError(error)) => {
                    self.session.deferred.decide(&mut batch.engine_batch, out);
                    out.error(&format!("ERR Protocol error: {error}"));
                    self.session.close_broken();
                    0
                }
            };
            rest = &rest[len..];
        }
        self.session.deferred.decide(&mut batch.engine_batch, out);
        let consumed = bytes.len() - rest.len();
        Progress { consumed, has_more: !is_incomplete && !self.session.is_closing }
    }

    /// Frees memory of a large command.
    pub(super) fn shrink(&mut self) {
        self.parser.shrink();
        self.session.deferred.shrink();
    }
}
