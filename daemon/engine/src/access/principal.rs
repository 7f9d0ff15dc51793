//! The originator of a request, and its rights.

use super::token::Token;
use crate::MAX_QUOTED_LEN;
use crate::config::Scope;
use crate::error::{Error, ErrorKind};
use crate::parameter::Parameter;

/// The originator of a request.
#[derive(Clone, Copy, Debug)]
pub enum Principal<'a> {
    /// A client of a daemon without tokens.
    Anonymous {
        /// Whether it runs on this machine.
        is_local: bool,
    },
    /// The bearer of a token.
    Token(&'a Token),
}

impl<'a> Principal<'a> {
    /// The name in the audit.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Principal::Anonymous { is_local: true } => "loopback",
            Principal::Anonymous { is_local: false } => "anyone",
            Principal::Token(token) => token.name(),
        }
    }

    /// Checks that the principal has one of these scopes; `what` needs it, and begins the message.
    ///
    /// # Errors
    /// It has none of them. Without tokens, only clients on this machine may operate.
    #[inline]
    pub fn authorize(self, scopes: &'static [Scope], what: &str) -> Result<(), Error> {
        match self {
            Principal::Anonymous { is_local: false } if scopes == [Scope::Operate] => {
                Err(not_local(what))
            }
            Principal::Token(token) if !token.has_any(scopes) => {
                Err(missing_scope(token, scopes, what))
            }
            Principal::Anonymous { .. } | Principal::Token(_) => Ok(()),
        }
    }

    /// Checks that the principal may use a policy.
    ///
    /// # Errors
    /// The token is not valid for it.
    #[inline]
    pub fn authorize_policy(self, policy: &str) -> Result<(), Error> {
        match self {
            Principal::Token(token) if !token.is_for(policy) => Err(missing_policy(token, policy)),
            Principal::Anonymous { .. } | Principal::Token(_) => Ok(()),
        }
    }
}

#[cold]
fn not_local(what: &str) -> Error {
    let detail = format!(
        "{what} is accepted from loopback only, and not through a proxy or from a web page; send \
         it from the machine that tollgate runs on, or configure a token with the scope operate"
    );
    Error::new(ErrorKind::NotLocal, detail)
}

#[cold]
fn missing_scope(token: &Token, scopes: &[Scope], what: &str) -> Error {
    let scopes: Vec<_> = scopes.iter().map(|scope| scope.as_str()).collect();
    let detail = format!(
        "{what} needs the scope {}, which the token {:?} does not have; add it to the token's \
         scopes, or send another token",
        scopes.join(" or "),
        token.name(),
    );
    Error::new(ErrorKind::InsufficientToken, detail)
}

#[cold]
fn missing_policy(token: &Token, policy: &str) -> Error {
    let policy: String = policy.chars().take(MAX_QUOTED_LEN).collect();
    let detail = format!(
        "the token {:?} is not valid for the policy {policy:?}; add it to the token's policies, or \
         send another token",
        token.name(),
    );
    Error::new(ErrorKind::InsufficientToken, detail).with_parameter(Parameter::Policy)
}
