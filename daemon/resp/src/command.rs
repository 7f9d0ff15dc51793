//! A command: its function, its rights and its documentation.

use tollgate_config::Scope;
use tollgate_engine::OperationSpec;

use super::context::CommandContext;
use super::failure::Failure;

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    /// Its name in lower case.
    pub(super) name: &'static str,
    /// Its description, in one sentence.
    pub(super) summary: &'static str,
    /// Its topic: `connection`, `server`, `transactions`, `generic`, `throttle` or `tollgate`.
    pub(super) group: &'static str,
    /// The version of Tollgate that introduced it.
    pub(super) since: &'static str,
    /// The number of arguments including the name; if negative, its absolute value is the minimum.
    pub(super) arity: i64,
    pub(super) flags: &'static [Flag],
    /// Where its keys are.
    pub(super) keys: Keys,
    pub(super) arguments: &'static [Argument],
    /// The scopes that permit it, one of which is enough; none for commands that neither change nor
    /// reveal anything.
    pub(super) scopes: &'static [Scope],
    /// The operation that the audit records it as, if it is an operator's.
    pub(super) audited_as: Option<&'static str>,
    pub(super) handler: Handler,
}

/// A function that executes a command.
pub(super) type Function = fn(&mut CommandContext<'_, '_>) -> Result<(), Failure>;

/// The code of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handler {
    /// An operation of the engine.
    Operation(&'static OperationSpec),
    /// A function of its own.
    Function(Function),
}

/// A property of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Write,
    ReadOnly,
    Fast,
    /// Allowed before authentication.
    NoAuth,
    /// Executed at once within a transaction.
    NotQueued,
    MovableKeys,
    /// Decides the [checks before it](super::deferred) itself, before it writes a reply.
    Deferring,
}

impl Flag {
    /// Its name in Redis, if it has one.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Flag::Write => Some("write"),
            Flag::ReadOnly => Some("readonly"),
            Flag::Fast => Some("fast"),
            Flag::NoAuth => Some("no_auth"),
            Flag::NotQueued | Flag::Deferring => None,
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

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentType {
    Key,
    Text,
    Integer,
    /// A token without a value.
    Token,
}

impl ArgumentType {
    /// Its name in Redis.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ArgumentType::Key => "key",
            ArgumentType::Text => "string",
            ArgumentType::Integer => "integer",
            ArgumentType::Token => "pure-token",
        }
    }
}

/// An argument of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) kind: ArgumentType,
    /// The token before it, or an empty string.
    pub(super) token: &'static str,
    pub(super) is_optional: bool,
    pub(super) is_multiple: bool,
}

impl Argument {
    const fn new(name: &'static str, kind: ArgumentType) -> Self {
        Argument { name, kind, token: "", is_optional: false, is_multiple: false }
    }

    pub(super) const fn key(name: &'static str) -> Self {
        Argument::new(name, ArgumentType::Key)
    }

    pub(super) const fn text(name: &'static str) -> Self {
        Argument::new(name, ArgumentType::Text)
    }

    pub(super) const fn integer(name: &'static str) -> Self {
        Argument::new(name, ArgumentType::Integer)
    }

    pub(super) const fn token(name: &'static str, token: &'static str) -> Self {
        Argument::new(name, ArgumentType::Token).after(token)
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

    fn usage(&self) -> String {
        let usage = match (self.kind, self.token) {
            (ArgumentType::Token, token) => token.to_owned(),
            (_, "") => self.name.to_owned(),
            (_, token) => format!("{token} {}", self.name),
        };
        match (self.is_optional, self.is_multiple) {
            (false, false) => usage,
            (true, false) => format!("[{usage}]"),
            (false, true) => format!("{usage} [{usage} …]"),
            (true, true) => format!("[{usage} …]"),
        }
    }
}

impl Command {
    /// A command without arguments that needs no rights.
    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        group: &'static str,
        function: Function,
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
            audited_as: None,
            handler: Handler::Function(function),
        }
    }

    pub(super) const fn with_flags(self, flags: &'static [Flag]) -> Self {
        Command { flags, ..self }
    }

    /// Sets the arguments, and the arity that follows from them.
    pub(super) const fn with_arguments(self, arguments: &'static [Argument]) -> Self {
        let (mut arity, mut is_fixed, mut index) = (1, true, 0);
        while index < arguments.len() {
            let argument = &arguments[index];
            if !argument.is_optional {
                arity += 1;
            }
            is_fixed &= !argument.is_optional && !argument.is_multiple;
            index += 1;
        }
        Command { arity: if is_fixed { arity } else { -arity }, arguments, ..self }
    }

    /// Its usage line.
    pub(super) fn usage(&self) -> String {
        let mut usage = self.name.to_ascii_uppercase();
        for argument in self.arguments {
            usage.push(' ');
            usage.push_str(&argument.usage());
        }
        usage
    }

    /// The failure of a command with too many or too few arguments.
    pub(super) fn wrong_arity(&self) -> Failure {
        let (name, usage) = (self.name, self.usage());
        Failure::bad(format!("wrong number of arguments for '{name}' command; usage: {usage}"))
    }

    pub(super) fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it accepts this number of arguments, including the name.
    #[inline]
    pub(super) fn accepts(&self, arguments: usize) -> bool {
        let min = usize::try_from(self.arity.unsigned_abs());
        match (self.arity < 0, min) {
            (true, Ok(min)) => arguments >= min,
            (false, Ok(exact)) => arguments == exact,
            (_, Err(_)) => unreachable!("the table has small arities"),
        }
    }
}

/// The longest name that [`CommandCache`] keeps.
const MAX_NAME_LEN: usize = 24;

/// The last command of a connection. Most connections send the same one repeatedly.
#[derive(Debug, Default)]
pub(super) struct CommandCache {
    name: [u8; MAX_NAME_LEN],
    len: usize,
    command: Option<&'static Command>,
}

impl CommandCache {
    /// The command with a name in any case; `find` searches the table.
    #[inline]
    pub(super) fn find(
        &mut self,
        name: &[u8],
        find: fn(&[u8]) -> Option<&'static Command>,
    ) -> Option<&'static Command> {
        if self.command.is_some() && self.name.get(..self.len) == Some(name) {
            return self.command;
        }
        let command = find(name)?;
        if let Some(buffer) = self.name.get_mut(..name.len()) {
            buffer.copy_from_slice(name);
            (self.len, self.command) = (name.len(), Some(command));
        }
        Some(command)
    }
}
