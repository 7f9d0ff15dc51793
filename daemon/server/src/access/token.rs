//! One token: its name, what it may do, and how its secret is known.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use super::file;
use crate::config::{Scope, TokenConfig, TokenSecret};

/// SHA-256 of a secret, which is all that is kept of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(secret: &[u8]) -> Self {
        Digest(Sha256::digest(secret).into())
    }

    /// Whether it is this one; says so after the same time for any two.
    pub(super) fn is(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(***)")
    }
}

/// One token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    name: String,
    scopes: Vec<Scope>,
    policies: Vec<String>,
    digest: Digest,
}

impl Token {
    /// Reads its file, if it has one.
    ///
    /// # Errors
    /// Why that cannot be used.
    pub(super) fn new(config: &TokenConfig) -> Result<Self, String> {
        let name = config.name.clone();
        let digest = match &config.secret {
            TokenSecret::Text(secret) => Digest::of(secret.as_bytes()),
            TokenSecret::File(path) => {
                let read = file::read(path)?;
                if let Some(warning) = read.warning {
                    tracing::warn!(token = name, "{warning}");
                }
                Digest::of(read.text.as_bytes())
            }
        };
        let (scopes, policies) = (config.scopes.clone(), config.policies.clone());
        Ok(Token { name, scopes, policies, digest })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether it may do what any of these scopes is for.
    pub(super) fn has_any(&self, scopes: &[Scope]) -> bool {
        self.scopes.iter().any(|scope| *scope == Scope::Admin || scopes.contains(scope))
    }

    /// Whether it is for the policy of this name.
    pub(super) fn is_for(&self, policy: &str) -> bool {
        self.policies.iter().any(|p| match p.strip_suffix('*') {
            Some(beginning) => policy.starts_with(beginning),
            None => p == policy,
        })
    }
}
