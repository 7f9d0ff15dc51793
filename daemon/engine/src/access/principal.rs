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
    Anonymous(Anonymous),
    /// The bearer of a token.
    Token(&'a Token),
}

/// Whether a client of a daemon without tokens may operate, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// It may.
    Operator,
    /// The configuration demands a token.
    WithoutToken,
    /// It is on another machine.
    Remote,
    /// Its request came through a proxy or from a web page.
    Indirect,
}

impl<'a> Principal<'a> {
    /// The name in the audit.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Principal::Anonymous(Anonymous::Operator) => "loopback",
            Principal::Anonymous(_) => "anyone",
            Principal::Token(token) => token.name(),
        }
    }

    /// Whether the principal may operate.
    #[must_use]
    pub fn is_operator(self) -> bool {
        match self {
            Principal::Anonymous(client) => client == Anonymous::Operator,
            Principal::Token(token) => token.has_any(&[Scope::Operate]),
        }
    }

    /// The name of the token, which separates the request ids of clients.
    pub(crate) fn token_name(self) -> Option<&'a str> {
        match self {
            Principal::Anonymous(_) => None,
            Principal::Token(token) => Some(token.name()),
        }
    }

    /// Checks that the principal has one of these scopes; `what` needs it, and begins the message.
    ///
    /// # Errors
    /// It has none of them. Without tokens, only some clients may operate.
    #[inline]
    pub fn authorize(self, scopes: &'static [Scope], what: &str) -> Result<(), Error> {
        match self {
            Principal::Anonymous(client)
                if client != Anonymous::Operator && scopes == [Scope::Operate] =>
            {
                Err(not_operator(client, what))
            }
            Principal::Token(token) if !token.has_any(scopes) => {
                Err(missing_scope(token, scopes, what))
            }
            Principal::Anonymous(_) | Principal::Token(_) => Ok(()),
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
            Principal::Anonymous(_) | Principal::Token(_) => Ok(()),
        }
    }
}

#[cold]
fn not_operator(client: Anonymous, what: &str) -> Error {
    let detail = match client {
        Anonymous::Operator => unreachable!("an operator may operate"),
        Anonymous::WithoutToken => format!(
            "{what} needs a token with the scope operate; configure tokens, send it to a listener \
             on a Unix socket, or set operators: loopback for development (--operators loopback of \
             tollgate ratelimit)"
        ),
        Anonymous::Remote => format!(
            "{what} is accepted from the machine that tollgate runs on only; send it from there, or \
             configure a token with the scope operate"
        ),
        Anonymous::Indirect => format!(
            "{what} is not accepted through a proxy, from a web page or under a foreign Host; send \
             it directly, or configure a token with the scope operate"
        ),
    };
    Error::new(ErrorKind::NotOperator, detail)
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
