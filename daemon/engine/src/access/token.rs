//! One token.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use super::file;
use crate::config::{Scope, TokenConfig, TokenSecret};

/// The SHA-256 digest of a secret. The secret itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Digest(Sha256::digest(secret).into())
    }

    /// Compares two digests in constant time.
    pub(super) fn matches(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(***)")
    }
}

/// One token: its name, its rights and the digest of its secret.
#[derive(Clone, Debug)]
pub struct Token {
    name: String,
    scopes: Vec<Scope>,
    policies: Vec<String>,
    digest: Digest,
}

impl Token {
    /// Reads the token's file, if it has one.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(super) fn new(config: &TokenConfig) -> Result<Self, String> {
        let name = config.name.clone();
        let digest = match &config.secret {
            TokenSecret::Text(secret) => Digest::new(secret.as_bytes()),
            TokenSecret::File(path) => {
                let secret = file::read(path)?;
                if let Some(warning) = secret.warning {
                    tracing::warn!(token = name, "{warning}");
                }
                Digest::new(secret.text.as_bytes())
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

    /// Whether it has one of these scopes; `admin` includes all.
    pub(super) fn has_any(&self, scopes: &[Scope]) -> bool {
        self.scopes.iter().any(|scope| *scope == Scope::Admin || scopes.contains(scope))
    }

    /// Whether it is valid for the policy of this name.
    pub(super) fn is_for(&self, policy: &str) -> bool {
        self.policies.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => policy.starts_with(prefix),
            None => pattern == policy,
        })
    }
}
