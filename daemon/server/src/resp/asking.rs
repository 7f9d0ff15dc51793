//! A command with all that its answer is made from.

use tollgate::{Key, MemoryLimiter, Policy};

use super::failure::Failure;
use super::frames::Args;
use super::out::Out;
use super::question::{Placed, Sum};
use super::session::Session;
use super::table::Command;
use crate::access::Who;
use crate::daemon::Daemon;
use crate::listener::Remote;
use crate::live::Live;
use crate::metrics::{Batch, Surface};

/// What all commands of a batch are answered from.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) daemon: &'a Daemon,
    /// What held when they came.
    pub(super) live: &'a Live,
    pub(super) remote: &'a Remote,
    /// Who asks, if that is known.
    pub(super) who: Option<Who<'a>>,
    /// The store, if it is memory.
    pub(super) memory: Option<&'a MemoryLimiter>,
    pub(super) counted: Batch<'a>,
    /// What the store is to be asked once the batch is read.
    pub(super) questions: Vec<Placed<'a>>,
    /// What a command of several keys has counted so far.
    pub(super) sum: Sum,
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        daemon: &'a Daemon,
        live: &'a Live,
        remote: &'a Remote,
        session: &Session,
    ) -> Self {
        Scene {
            daemon,
            live,
            remote,
            who: session.who(remote, &live.access),
            memory: daemon.limiter().as_memory(),
            counted: Batch::begin(daemon, live, Surface::Resp),
            questions: Vec::new(),
            sum: Sum::default(),
        }
    }

    /// Who asks; commands that need nobody to be known are not asked this.
    pub(super) fn known(&self) -> Result<Who<'a>, Failure> {
        self.who.ok_or_else(Failure::no_token)
    }
}

/// A command with all that its answer is made from.
#[derive(Debug)]
pub(super) struct Asking<'s, 'a> {
    pub(super) session: &'s mut Session,
    pub(super) scene: &'s mut Scene<'a>,
    pub(super) out: &'s mut Out,
    pub(super) args: Args<'s>,
    pub(super) command: &'static Command,
}

impl<'s, 'a> Asking<'s, 'a> {
    /// An argument that the arity has promised.
    #[inline]
    pub(super) fn arg(&self, index: usize) -> &'s [u8] {
        self.args.get(index).unwrap_or_default()
    }

    /// A key, if it is one.
    #[inline]
    pub(super) fn key(&self, bytes: &'s [u8]) -> Result<Key<'s>, Failure> {
        let most = self.scene.live.bounds.key_bytes;
        if bytes.len() > most {
            let len = bytes.len();
            let detail =
                format!("key is {len} bytes long; at most {most} are taken, so send a hash of it");
            return Err(Failure::bad(detail));
        }
        Ok(Key::new(bytes)?)
    }

    /// Refuses what needs the command's scopes, and a policy that the token is not for.
    #[inline]
    pub(super) fn may_use(&self, policy: &Policy) -> Result<(), Failure> {
        Ok(self.scene.known()?.must_be_for(policy.name())?)
    }

    /// That there are too many arguments, or too few.
    pub(super) fn wrong_number(&self) -> Failure {
        wrong_number(self.command)
    }
}

/// That a command has too many arguments, or too few, and how it is written.
pub(super) fn wrong_number(command: &Command) -> Failure {
    let usage = super::reference::usage(command);
    let name = command.name;
    Failure::bad(format!("wrong number of arguments for '{name}' command; write {usage}"))
}
