//! Every variable of envoyproxy/ratelimit, in one table: its default and kind there, and what
//! becomes of it here.
//!
//! Reading, `--variables`, what is said at the start and the page in the manual all come from here.
//! There is a file for each group.

mod decisions;
mod memcache;
mod metrics;
mod redis;
mod serving;
mod sources;
mod tracing;
mod xds;

use super::value::{Kind, Value};

/// A variable.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// What the reference takes where it is not set. Empty where it takes nothing.
    pub(super) default: &'static str,
    pub(super) fate: Fate,
    /// What is the case where it is ignored, if that is not its default.
    holds: Option<&'static str>,
    /// Whether its value is never shown.
    pub(super) is_secret: bool,
}

/// What becomes of a variable.
#[derive(Debug)]
pub(super) enum Fate {
    /// It does what is said.
    Honoured(&'static str),
    /// It does nothing: why, and what to do instead.
    Ignored(&'static str),
}

/// Variables that stand together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) variables: &'static [Variable],
}

/// All of them.
pub(super) static GROUPS: &[Group] = &[
    serving::GROUP,
    sources::GROUP,
    xds::GROUP,
    decisions::GROUP,
    redis::GROUP,
    redis::PER_SECOND,
    memcache::GROUP,
    metrics::GROUP,
    tracing::GROUP,
];

pub(super) fn all() -> impl Iterator<Item = &'static Variable> {
    GROUPS.iter().flat_map(|group| group.variables)
}

const fn honoured(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    what: &'static str,
) -> Variable {
    Variable { name, kind, default, fate: Fate::Honoured(what), holds: None, is_secret: false }
}

const fn ignored(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    why: &'static str,
) -> Variable {
    Variable { name, kind, default, fate: Fate::Ignored(why), holds: None, is_secret: false }
}

impl Variable {
    const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    const fn holds(mut self, value: &'static str) -> Self {
        self.holds = Some(value);
        self
    }

    /// Whether a value changes nothing where the variable is ignored: it is the default, or what is
    /// the case anyway, in other words perhaps.
    pub(super) fn is_idle(&self, text: &str) -> bool {
        let usual = self.holds.unwrap_or(self.default);
        let is_same = |value: Value| self.kind.read(usual).is_ok_and(|usual| usual == value);
        text == usual || self.kind.read(text).is_ok_and(is_same)
    }
}
