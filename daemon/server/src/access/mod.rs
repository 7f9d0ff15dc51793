//! Who may do what: tokens by scope and policy, for every listener.
//!
//! Without tokens anybody who reaches a listener may ask and spend, and who works on this machine
//! may operate. With tokens each request needs one, from this machine too; only the probes and the
//! metrics, which carry no key and change nothing, are open to whoever reaches their listener.

mod error;
mod failures;
mod file;
mod refusal;
mod token;
mod who;

use std::collections::HashSet;

use crate::config::TokenConfig;

pub(crate) use self::error::{AccessError, AccessErrors};
pub(crate) use self::failures::Failures;
pub(crate) use self::refusal::Refusal;
pub(crate) use self::token::Digest;
use self::token::Token;
pub(crate) use self::who::Who;

/// The tokens there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    tokens: Vec<Token>,
}

impl Access {
    /// Reads the tokens' files; a reload does it again when one of them has changed.
    ///
    /// # Errors
    /// Files cannot be used, or two tokens cannot be told apart; all that is wrong.
    pub(crate) fn new(configs: &[TokenConfig]) -> Result<Self, AccessErrors> {
        let (mut tokens, mut errors) = (Vec::new(), Vec::new());
        let (mut names, mut digests) = (HashSet::new(), HashSet::new());
        for (at, config) in configs.iter().enumerate() {
            let is_new_name = names.insert(&*config.name);
            let why = match Token::new(config) {
                Err(why) => why,
                Ok(_) if !is_new_name => "two tokens have that name; rename one".to_owned(),
                Ok(token) if !digests.insert(*token.digest()) => {
                    "another token has the same secret; draw a new one".to_owned()
                }
                Ok(token) => {
                    tokens.push(token);
                    continue;
                }
            };
            errors.push(AccessError::of(at, &config.name, why));
        }
        if errors.is_empty() { Ok(Access { tokens }) } else { Err(AccessErrors(errors)) }
    }

    /// Whether no token is configured.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Who bears this secret. All tokens are compared, each in constant time.
    pub(crate) fn bearer(&self, secret: &[u8]) -> Option<Who<'_>> {
        self.known(&Digest::of(secret))
    }

    /// Who bears the secret of this digest, for as long as there is such a token.
    pub(crate) fn known(&self, digest: &Digest) -> Option<Who<'_>> {
        let mut found = None;
        for token in &self.tokens {
            if token.digest().is(digest) {
                found = Some(Who::Bearer(token));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
