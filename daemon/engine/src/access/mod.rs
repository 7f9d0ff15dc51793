//! Tokens and their rights, on every listener.
//!
//! Without tokens every client that reaches a listener may check and spend, and clients on this
//! machine may operate. With tokens each request needs one, from this machine too. Probes and
//! metrics never need one: they carry no key and change nothing.

mod principal;
#[cfg(test)]
mod tests;
mod token;

use std::collections::HashSet;
use std::fmt;

use crate::config::TokenConfig;

pub use self::principal::Principal;
pub use self::token::{Digest, Token};

/// The configured tokens.
#[derive(Clone, Debug, Default)]
pub struct Access {
    tokens: Vec<Token>,
}

impl Access {
    /// Reads the files of tokens; a reload repeats this when one of them has changed.
    ///
    /// # Errors
    /// All files that cannot be used, and all tokens that share a name or a secret.
    pub fn new(configs: &[TokenConfig]) -> Result<Self, AccessErrors> {
        let (mut tokens, mut errors) = (Vec::new(), Vec::new());
        let (mut names, mut digests) = (HashSet::new(), HashSet::new());
        for (index, config) in configs.iter().enumerate() {
            let is_new_name = names.insert(&*config.name);
            let message = match Token::new(config) {
                Err(message) => message,
                Ok(_) if !is_new_name => "two tokens have that name; rename one".to_owned(),
                Ok(token) if !digests.insert(*token.digest()) => {
                    "another token has the same secret; generate a new one".to_owned()
                }
                Ok(token) => {
                    tokens.push(token);
                    continue;
                }
            };
            errors.push(AccessError { index, token: config.name.clone(), message });
        }
        if errors.is_empty() { Ok(Access { tokens }) } else { Err(AccessErrors(errors)) }
    }

    /// Whether no token is configured.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
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
            if token.digest().matches(digest) {
                found = Some(Principal::Token(token));
            }
        }
        found
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
