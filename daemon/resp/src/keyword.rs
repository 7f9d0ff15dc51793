//! The keywords that may follow a policy and its key, each with a value.

use tollgate_engine::Parameter;

use super::command::{Argument, ArgumentType};

/// A keyword, and the parameter of its value.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) parameter: Parameter,
    pub(super) token: &'static str,
    /// The name and the type of the value in `COMMAND DOCS`.
    value: (&'static str, ArgumentType),
}

/// Every keyword, in the order of documentation.
pub(super) static KEYWORDS: [Keyword; 9] = [
    Keyword::new(Parameter::Cost, "COST", ("cost", ArgumentType::Integer)),
    Keyword::new(Parameter::Tier, "TIER", ("tier", ArgumentType::Text)),
    Keyword::new(Parameter::Note, "NOTE", ("note", ArgumentType::Text)),
    Keyword::new(Parameter::RequestId, "ID", ("request-id", ArgumentType::Text)),
    Keyword::new(Parameter::MaxWait, "MAXWAIT", ("max-wait-us", ArgumentType::Integer)),
    Keyword::new(Parameter::For, "FOR", ("for-us", ArgumentType::Integer)),
    Keyword::new(Parameter::Time, "TIME", ("time-us", ArgumentType::Integer)),
    Keyword::new(Parameter::LeaseId, "LEASE", ("lease-id", ArgumentType::Text)),
    Keyword::new(Parameter::ReservationId, "RESERVATION", ("reservation-id", ArgumentType::Text)),
];

impl Keyword {
    const fn new(
        parameter: Parameter,
        token: &'static str,
        value: (&'static str, ArgumentType),
    ) -> Self {
        Keyword { parameter, token, value }
    }

    /// The keyword of a token in any case.
    pub(super) fn from_token(token: &[u8]) -> Option<&'static Self> {
        KEYWORDS.iter().find(|keyword| keyword.token.as_bytes().eq_ignore_ascii_case(token))
    }

    /// Its documentation.
    pub(super) fn argument(&self) -> Argument {
        let (name, kind) = self.value;
        Argument::new(name, kind).after(self.token)
    }

    /// Whether each check may have its own; the others are written before the first `AND`.
    pub(super) fn is_per_check(&self) -> bool {
        matches!(
            self.parameter,
            Parameter::Cost | Parameter::Tier | Parameter::Note | Parameter::RequestId
        )
    }
}
