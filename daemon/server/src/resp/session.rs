//! What a connection has said of itself, and how its commands are answered. No socket is known
//! here.

use super::asking::{Asking, Scene, wrong_number};
use super::failure::Failure;
use super::frames::{Args, FrameBounds, Frames, Parsed, ProtocolError};
use super::out::Out;
use super::table::{Command, Flag, Recent, near};
use super::throttles::OwnThrottles;
use super::transaction::Transaction;
use super::verb::{audited, begin_record};
use crate::access::{Access, Digest, Who};
use crate::listener::Remote;

/// From how many bytes of replies on they are written before more is read.
const MUCH: usize = 256 * 1024;
/// The most bytes of replies that wait to be written: a transaction has one reply, however long.
pub(super) const TOO_MUCH: usize = 64 * 1024 * 1024;

/// What a connection has said of itself.
#[derive(Debug)]
pub(super) struct Session {
    /// Names the connection as long as the daemon lives.
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) library: [String; 2],
    /// The token that it has shown.
    pub(super) token: Option<Digest>,
    pub(super) transaction: Option<Transaction>,
    pub(super) throttles: OwnThrottles,
    recent: Recent,
    /// Whether it is to end once all is answered.
    pub(super) is_closing: bool,
    /// Whether it ends for what the peer has sent.
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
            throttles: OwnThrottles::default(),
            recent: Recent::default(),
            is_closing: false,
            is_broken: false,
        }
    }

    /// Who asks, if that is known. Looked up for each batch: a reload may have taken the token away.
    pub(super) fn who<'a>(&self, remote: &Remote, access: &'a Access) -> Option<Who<'a>> {
        if access.is_open() {
            return Some(Who::Anyone { is_local: remote.peer.is_local() });
        }
        access.known(self.token.as_ref()?)
    }

    /// As if it had just been made.
    pub(super) fn reset(&mut self) {
        (self.name, self.token, self.transaction) = (String::new(), None, None);
    }

    /// Answers a command, or keeps it for its transaction.
    fn hear(&mut self, args: Args<'_>, scene: &mut Scene<'_>, out: &mut Out) {
        if let Err(failure) = self.try_hear(args, scene, out) {
            if let Some(transaction) = &mut self.transaction {
                transaction.is_flawed = true;
            }
            out.error(failure.line());
        }
    }

    fn try_hear<'a>(
        &mut self,
        args: Args<'_>,
        scene: &mut Scene<'a>,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let name = args.get(0).unwrap_or_default();
        let Some(command) = self.recent.find(name) else { return self.unknown(name, args, scene) };
        if scene.who.is_none() && !command.is(Flag::NoAuth) {
            return Err(stranger(command, scene));
        }
        if !command.takes(args.len()) {
            return Err(wrong_number(command));
        }
        match &mut self.transaction {
            Some(transaction) if !command.is(Flag::AtOnce) => {
                transaction.keep(command, args, &scene.live.bounds)?;
                out.simple("QUEUED");
                Ok(())
            }
            _ => {
                let mut asking = Asking { session: self, scene, out, args, command };
                asking.answer();
                Ok(())
            }
        }
    }

    /// A command that there is not.
    #[cold]
    fn unknown(&mut self, name: &[u8], args: Args<'_>, scene: &Scene<'_>) -> Result<(), Failure> {
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            // A browser that was made to send this must not have the rest of it taken for commands.
            tracing::debug!(peer = %scene.remote, "HTTP was sent where RESP is spoken");
            (self.is_closing, self.is_broken) = (true, true);
            let detail = "Protocol error: this is HTTP; tollgate speaks it where listen.http says";
            return Err(Failure::bad(detail));
        }
        if scene.who.is_none() {
            return Err(Failure::no_token());
        }
        const MAX_SHOWN: usize = 128;
        let part = |bytes: &[u8], most: usize| {
            bytes.get(..bytes.len().min(most)).unwrap_or_default().escape_ascii().to_string()
        };
        let mut shown = String::new();
        for arg in args.from(1) {
            if shown.len() >= MAX_SHOWN {
                break;
            }
            shown.push_str(&format!("'{}' ", part(arg, MAX_SHOWN - shown.len())));
        }
        let name_shown = part(name, MAX_SHOWN);
        let hint = near(name).unwrap_or_else(|| "COMMAND LIST names those there are".to_owned());
        let with = "with args beginning with";
        Err(Failure::bad(format!("unknown command '{name_shown}', {with}: {shown}; {hint}")))
    }
}

/// That a token is needed, which is counted, and of an operator's command told to the audit.
#[cold]
fn stranger(command: &Command, scene: &Scene<'_>) -> Failure {
    let failure = Failure::no_token();
    scene.daemon.failures.add(scene.daemon.clock.now(), scene.remote);
    if command.is_for_operators() {
        begin_record(scene, audited(command)).refused(failure.detail());
    }
    failure
}

impl Asking<'_, '_> {
    /// Answers the command, whatever comes of it.
    #[inline]
    pub(super) fn answer(&mut self) {
        if let Err(failure) = self.answer_if_allowed() {
            self.out.error(failure.line());
        }
    }

    #[inline]
    fn answer_if_allowed(&mut self) -> Result<(), Failure> {
        // An operator's are refused with a line in the audit.
        if !self.command.scopes.is_empty() && !self.command.is_for_operators() {
            self.scene.known()?.must_have(self.command.scopes, self.command.name)?;
        }
        (self.command.answer)(self)
    }
}

/// How far a batch has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The bytes that are answered.
    pub(super) used: usize,
    /// Whether what follows them is the beginning of a command, or nothing.
    pub(super) is_all: bool,
}

/// A connection without its socket: bytes in, replies out.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) session: Session,
    frames: Frames,
}

impl Conversation {
    pub(super) fn new(id: u64) -> Self {
        Conversation { session: Session::new(id), frames: Frames::default() }
    }

    /// Answers the commands in `bytes`, which begin where the first command does that is not
    /// answered: all of them, or as many as are answered at a time.
    pub(super) fn hear(&mut self, bytes: &[u8], scene: &mut Scene<'_>, out: &mut Out) -> Progress {
        let mut used = 0;
        let body = scene.live.bounds.body;
        for _ in 0..scene.live.bounds.pipeline {
            if self.session.is_closing || out.len() >= MUCH {
                break;
            }
            let bounds = match scene.who {
                Some(_) => FrameBounds::new(body),
                None => FrameBounds::of_strangers(),
            };
            let rest = bytes.get(used..).unwrap_or_default();
            match self.frames.next(rest, &bounds) {
                Ok(Parsed::Half) => return Progress { used, is_all: true },
                Ok(Parsed::Nothing(len)) => used += len,
                Ok(Parsed::Command(len)) => {
                    self.session.hear(self.frames.args(rest), scene, out);
                    used += len;
                }
                Err(ProtocolError(why)) => {
                    out.error(&format!("ERR Protocol error: {why}"));
                    (self.session.is_closing, self.session.is_broken) = (true, true);
                }
            }
        }
        Progress { used, is_all: self.session.is_closing }
    }

    /// Ends the connection if there is more to write than may be.
    pub(super) fn hold(&mut self, out: &mut Out) {
        if out.len() > TOO_MUCH {
            out.clear(MUCH);
            out.error("ERR the replies of a transaction are too long; queue fewer commands");
            (self.session.is_closing, self.session.is_broken) = (true, true);
        }
    }

    /// Gives memory back that a large command took.
    pub(super) fn shrink(&mut self) {
        self.frames.shrink();
    }
}
