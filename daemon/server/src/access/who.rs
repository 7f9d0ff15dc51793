//! Who asks, and what they may.

use super::refusal::Refusal;
use super::token::Token;
use crate::config::Scope;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who<'a> {
    /// Whoever reaches the listener, where no token is configured.
    Anyone {
        /// Whether they work on this machine.
        is_local: bool,
    },
    /// Whoever has the secret of this token.
    Bearer(&'a Token),
}

impl<'a> Who<'a> {
    /// What they are called in the audit.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Who::Anyone { is_local: true } => "loopback",
            Who::Anyone { is_local: false } => "anyone",
            Who::Bearer(token) => token.name(),
        }
    }

    /// Refuses what needs one of these scopes to whoever has none of them; `what` is the
    /// beginning of a sentence.
    pub(crate) fn must_have(self, scopes: &'static [Scope], what: &str) -> Result<(), Refusal> {
        match self {
            // What only an operator may do is for who works on this machine, unless tokens say who
            // is one.
            Who::Anyone { is_local: false } if scopes == [Scope::Operate] => {
                Err(Refusal::Elsewhere { what: what.to_owned() })
            }
            Who::Bearer(token) if !token.has_any(scopes) => Err(Refusal::Scope {
                token: token.name().to_owned(),
                what: what.to_owned(),
                scopes,
            }),
            Who::Anyone { .. } | Who::Bearer(_) => Ok(()),
        }
    }

    /// Refuses a policy that the token is not for.
    pub(crate) fn must_be_for(self, policy: &str) -> Result<(), Refusal> {
        match self {
            Who::Bearer(token) if !token.is_for(policy) => Err(Refusal::Policy {
                token: token.name().to_owned(),
                policy: policy.chars().take(128).collect(),
            }),
            Who::Anyone { .. } | Who::Bearer(_) => Ok(()),
        }
    }
}
