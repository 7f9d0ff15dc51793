//! One token, and its file.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::config::{
    MAX_TOKEN_BYTES, MIN_TOKEN_BYTES, Scope, TokenConfig, TokenSecret, short_token,
};
use crate::connection::ClientCertificate;

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

/// What a client shows to have the rights of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Credential {
    /// The secret with this digest.
    Secret(Digest),
    /// A client certificate with this name.
    Certificate(String),
}

impl Credential {
    /// Whether it is the secret with this digest. Compares in constant time.
    pub(super) fn matches(&self, digest: &Digest) -> bool {
        matches!(self, Credential::Secret(own) if own.matches(digest))
    }

    /// Whether it is a name of this certificate.
    pub(super) fn is_of(&self, certificate: &ClientCertificate) -> bool {
        matches!(self, Credential::Certificate(name) if certificate.names.contains(name))
    }

    /// The message about another token with the same credential.
    pub(super) fn duplicate(&self) -> &'static str {
        match self {
            Credential::Secret(_) => "another token has the same secret; generate a new one",
            Credential::Certificate(_) => {
                "another token has the same certificate; merge the two, or name another certificate"
            }
        }
    }
}

/// One token: its name, its rights and its credential.
#[derive(Clone, Debug)]
pub struct Token {
    name: String,
    scopes: Vec<Scope>,
    policies: Vec<String>,
    credential: Credential,
}

impl Token {
    /// Reads the token's file, if it has one.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(super) fn new(config: &TokenConfig) -> Result<Self, String> {
        let name = config.name.clone();
        let credential = match &config.secret {
            TokenSecret::Text(secret) => Credential::Secret(Digest::new(secret.as_bytes())),
            TokenSecret::Sha256(digest) => Credential::Secret(Digest(*digest)),
            TokenSecret::Certificate(name) => Credential::Certificate(name.clone()),
            TokenSecret::File(path) => {
                let secret = read_file(path)?;
                if let Some(warning) = secret.warning {
                    tracing::warn!(token = name, "{warning}");
                }
                Credential::Secret(Digest::new(secret.text.as_bytes()))
            }
        };
        let (scopes, policies) = (config.scopes.clone(), config.policies.clone());
        Ok(Token { name, scopes, policies, credential })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn credential(&self) -> &Credential {
        &self.credential
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

/// The content of a token file.
pub(super) struct Secret {
    text: String,
    /// A problem of a file that can be used.
    pub(super) warning: Option<String>,
}

/// Reads a token, without its line ending.
///
/// # Errors
/// The file cannot be used; the message says how to fix it.
pub(super) fn read_file(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let unreadable = |error: io::Error| format!("{shown} cannot be read: {error}");
    let mut file = File::open(path).map_err(unreadable)?;
    let is_world_readable =
        file.metadata().map(|metadata| is_world_readable(&metadata)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // A line ending, and one byte more to detect a longer token.
    const MAX_READ: u64 = 1_024 + 3;
    file.by_ref().take(MAX_READ).read_to_end(&mut bytes).map_err(unreadable)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(format!(
            "{shown} is empty; write a token, such as the output of openssl rand -hex 32"
        ));
    }
    if line.len() > MAX_TOKEN_BYTES {
        let max = MAX_TOKEN_BYTES;
        return Err(format!("{shown} is longer than {max} bytes, the maximum for a token"));
    }
    if let Some(at) = line.iter().position(|byte| !byte.is_ascii_graphic()) {
        let rule = "a token is one line of ASCII without spaces";
        return Err(format!("{shown} has an invalid byte at position {}; {rule}", at + 1));
    }
    if line.len() < MIN_TOKEN_BYTES {
        return Err(format!("{shown}: {}", short_token(line.len())));
    }
    let warning = is_world_readable
        .then(|| format!("{shown} is readable by every user; run chmod o-rwx {shown}"));
    Ok(Secret { text: String::from_utf8_lossy(line).into_owned(), warning })
}

#[cfg(unix)]
fn is_world_readable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_world_readable(_: &Metadata) -> bool {
    false
}
