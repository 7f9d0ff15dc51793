//! Tokens and their rights, on every listener.
//!
//! Without tokens every client that reaches a listener may check and spend; clients on a Unix
//! socket, and on this machine if the configuration says so, may also operate. With tokens each
//! request needs one, from this machine too. Probes and metrics never need one: they carry no key
//! and change nothing.

mod principal;
#[cfg(test)]
mod tests;
mod token;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use crate::config::{Operators, TokenConfig};
use crate::connection::{ClientCertificate, PeerAddress};

pub use self::principal::{Anonymous, Principal};
pub use self::token::{Digest, Token};

/// The time until a wrong token is answered, so that guessing is slow. Missing ones are answered at
/// once.
pub const WRONG_TOKEN_DELAY: Duration = Duration::from_millis(200);

/// The configured tokens, and who may operate without any.
#[derive(Clone, Debug, Default)]
pub struct Access {
    tokens: Vec<Token>,
    operators: Operators,
}

impl Access {
    /// Reads the files of tokens; a reload repeats this when one of them has changed.
    ///
    /// # Errors
    /// All files that cannot be used, and all tokens that share a name or a secret.
    pub fn new(configs: &[TokenConfig]) -> Result<Self, AccessErrors> {
        let (mut tokens, mut errors) = (Vec::new(), Vec::new());
        let (mut names, mut credentials) = (HashSet::new(), HashSet::new());
        for (index, config) in configs.iter().enumerate() {
            let is_new_name = names.insert(&*config.name);
            let message = match Token::new(config) {
                Err(message) => message,
                Ok(_) if !is_new_name => "two tokens have that name; rename one".to_owned(),
                Ok(token) if !credentials.insert(token.credential().clone()) => {
                    token.credential().duplicate().to_owned()
                }
                Ok(token) => {
                    tokens.push(token);
                    continue;
                }
            };
            errors.push(AccessError { index, token: config.name.clone(), message });
        }
        if !errors.is_empty() {
            return Err(AccessErrors(errors));
        }
        Ok(Access { tokens, operators: Operators::default() })
    }

    /// Sets which clients may operate if there are no tokens.
    #[must_use]
    pub fn with_operators(self, operators: Operators) -> Self {
        Access { operators, ..self }
    }

    /// Whether no token is configured.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The principal of a client without a token; absent if tokens are configured. A request is
    /// direct if nothing shows that it came through a proxy or from a web page.
    #[must_use]
    pub fn anonymous(
        &self,
        peer: PeerAddress,
        is_direct: impl FnOnce() -> bool,
    ) -> Option<Principal<'_>> {
        if !self.is_open() {
            return None;
        }
        let is_trusted = match self.operators {
            Operators::Tokens => peer == PeerAddress::Unix,
            Operators::Loopback => peer.is_local(),
        };
        Some(Principal::Anonymous(if !is_trusted {
            match self.operators {
                Operators::Tokens => Anonymous::WithoutToken,
                Operators::Loopback => Anonymous::Remote,
            }
        } else if is_direct() {
            Anonymous::Operator
        } else {
            Anonymous::Indirect
        }))
    }

    /// The principal with this secret.
    #[must_use]
    pub fn authenticate(&self, secret: &[u8]) -> Option<Principal<'_>> {
        self.find(&Digest::new(secret))
    }

    /// The principal whose secret has this digest. Compares all tokens, each in constant time.
    #[must_use]
    pub fn find(&self, digest: &Digest) -> Option<Principal<'_>> {
        let mut found = None;
        for token in &self.tokens {
            if token.credential().matches(digest) {
                found = Some(Principal::Token(token));
            }
        }
        found
    }

    /// The principal of the first entry that names this certificate.
    #[must_use]
    pub fn of_certificate(&self, certificate: &ClientCertificate) -> Option<Principal<'_>> {
        let token = self.tokens.iter().find(|token| token.credential().is_of(certificate))?;
        Some(Principal::Token(token))
    }
}

/// A token that cannot be used, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// The token's index in the configuration.
    pub index: usize,
    token: String,
    /// The message without the token's name.
    pub message: String,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {:?}: {}", self.token, self.message)
    }
}

/// All tokens that cannot be used; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessErrors(pub Vec<AccessError>);

/// One error per line.
impl fmt::Display for AccessErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for AccessErrors {}
