//! The commands there are: one table for what is answered, and for what is told of it.

use super::asking::Asking;
use super::commands::COMMANDS;
use super::failure::Failure;
use crate::config::Scope;
use crate::nearest::did_you_mean;

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    /// Its name, in small letters.
    pub(super) name: &'static str,
    /// What it does, in a sentence.
    pub(super) summary: &'static str,
    /// What it is about: `connection`, `server`, `transactions`, `generic`, `throttle`, `tollgate`.
    pub(super) group: &'static str,
    /// Since which version of Tollgate.
    pub(super) since: &'static str,
    /// How many arguments it has with its name; at least as many as its amount, if it is negative.
    pub(super) arity: i64,
    pub(super) flags: &'static [Flag],
    /// Where its keys are.
    pub(super) keys: Keys,
    pub(super) arguments: &'static [Argument],
    /// The scopes each of which is enough to send it; none for what changes and tells nothing.
    pub(super) scopes: &'static [Scope],
    pub(super) answer: fn(&mut Asking<'_, '_>) -> Result<(), Failure>,
}

/// What a command is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Write,
    ReadOnly,
    Fast,
    /// Taken before a token was shown.
    NoAuth,
    /// Done at once amid a transaction.
    AtOnce,
    MovableKeys,
}

impl Flag {
    /// The word that Redis has for it, if it has one.
    pub(super) const fn word(self) -> Option<&'static str> {
        match self {
            Flag::Write => Some("write"),
            Flag::ReadOnly => Some("readonly"),
            Flag::Fast => Some("fast"),
            Flag::NoAuth => Some("no_auth"),
            Flag::AtOnce => None,
            Flag::MovableKeys => Some("movablekeys"),
        }
    }
}

/// Where the keys of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    /// The first argument.
    First,
    /// Every argument.
    All,
    /// After each policy.
    OfChecks,
}

/// What an argument is, in Redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Key,
    Text,
    Integer,
    /// A word that stands for itself.
    Word,
}

impl Type {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Type::Key => "key",
            Type::Text => "string",
            Type::Integer => "integer",
            Type::Word => "pure-token",
        }
    }
}

/// An argument of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) kind: Type,
    /// The word before it; empty if there is none.
    pub(super) token: &'static str,
    pub(super) is_optional: bool,
    pub(super) is_multiple: bool,
}

impl Argument {
    pub(super) const fn new(name: &'static str, kind: Type) -> Self {
        Argument { name, kind, token: "", is_optional: false, is_multiple: false }
    }

    pub(super) const fn optional(self) -> Self {
        Argument { is_optional: true, ..self }
    }

    pub(super) const fn multiple(self) -> Self {
        Argument { is_multiple: true, ..self }
    }

    pub(super) const fn after(self, token: &'static str) -> Self {
        Argument { token, ..self }
    }
}

impl Command {
    /// A command that takes its name alone; the rest of its file says what differs.
    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        group: &'static str,
        answer: fn(&mut Asking<'_, '_>) -> Result<(), Failure>,
    ) -> Self {
        Command {
            name,
            summary,
            group,
            since: "0.1.0",
            arity: 1,
            flags: &[Flag::Fast],
            keys: Keys::None,
            arguments: &[],
            scopes: &[],
            answer,
        }
    }

    pub(super) fn is(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it is an operator's, and so of the audit.
    pub(super) fn is_for_operators(&self) -> bool {
        self.scopes.contains(&Scope::Operate)
    }

    #[inline]
    pub(super) fn takes(&self, arguments: usize) -> bool {
        let arguments = i64::try_from(arguments).unwrap_or(i64::MAX);
        if self.arity < 0 { arguments >= -self.arity } else { arguments == self.arity }
    }
}

/// The command of a name in letters of any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// The longest name of a command.
const MAX_NAME_LEN: usize = 24;

/// The command that a connection has sent last: most send one again and again.
#[derive(Debug, Default)]
pub(super) struct Recent {
    name: [u8; MAX_NAME_LEN],
    len: usize,
    command: Option<&'static Command>,
}

impl Recent {
    #[inline]
    pub(super) fn find(&mut self, name: &[u8]) -> Option<&'static Command> {
        if self.command.is_some() && self.name.get(..self.len) == Some(name) {
            return self.command;
        }
        let command = find(name)?;
        if let Some(kept) = self.name.get_mut(..name.len()) {
            kept.copy_from_slice(name);
            (self.len, self.command) = (name.len(), Some(command));
        }
        Some(command)
    }
}

/// `did you mean …?`, for a name that no command has.
pub(super) fn near(name: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    did_you_mean(&name, COMMANDS.iter().map(|command| command.name))
}
