//! The words that may follow a policy and its key.

use super::table::{Argument, Type};

/// A word of a command, which a value follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Cost,
    Tier,
    Note,
    Id,
    MaxWait,
    For,
    Time,
    Lease,
    Reservation,
}

impl Word {
    const ALL: [Word; 9] = [
        Word::Cost,
        Word::Tier,
        Word::Note,
        Word::Id,
        Word::MaxWait,
        Word::For,
        Word::Time,
        Word::Lease,
        Word::Reservation,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        self.argument().token
    }

    /// As `COMMAND DOCS` tells it.
    pub(super) const fn argument(self) -> Argument {
        let (name, kind, token) = match self {
            Word::Cost => ("cost", Type::Integer, "COST"),
            Word::Tier => ("tier", Type::Text, "TIER"),
            Word::Note => ("note", Type::Text, "NOTE"),
            Word::Id => ("request-id", Type::Text, "ID"),
            Word::MaxWait => ("max-wait-us", Type::Integer, "MAXWAIT"),
            Word::For => ("for-us", Type::Integer, "FOR"),
            Word::Time => ("time-us", Type::Integer, "TIME"),
            Word::Lease => ("lease-id", Type::Text, "LEASE"),
            Word::Reservation => ("reservation-id", Type::Text, "RESERVATION"),
        };
        Argument::new(name, kind).after(token).optional()
    }

    pub(super) fn of(text: &[u8]) -> Option<Self> {
        Word::ALL.into_iter().find(|x| x.as_str().as_bytes().eq_ignore_ascii_case(text))
    }
}
