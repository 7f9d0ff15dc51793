//! Why somebody may not do what they ask.

use std::fmt;

use crate::config::Scope;

/// Why somebody may not do what they ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No token is configured, and it did not come from this machine.
    Elsewhere { what: String },
    /// The token has none of these scopes.
    Scope { token: String, what: String, scopes: &'static [Scope] },
    /// The token is not for this policy.
    Policy { token: String, policy: String },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Elsewhere { what } => write!(
                f,
                "{what} is taken from loopback only, and not through a proxy or from a web page; \
                 send it from the machine that tollgate runs on, or configure a token whose scopes \
                 have operate"
            ),
            Refusal::Scope { token, what, scopes } => {
                let scopes: Vec<_> = scopes.iter().map(|scope| scope.as_str()).collect();
                write!(
                    f,
                    "{what} needs the scope {}, which the token {token:?} does not have; add it to \
                     the token's scopes, or send another token",
                    scopes.join(" or ")
                )
            }
            Refusal::Policy { token, policy } => write!(
                f,
                "the token {token:?} is not for the policy {policy:?}; add it to the token's \
                 policies, or send another token"
            ),
        }
    }
}
