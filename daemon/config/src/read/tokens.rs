//! `tokens`.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use crate::Listen;
use crate::fields::{Invalid, SectionReader};

/// An access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The unique name of the token in the audit log.
    pub name: String,
    /// The token, or what stands for it.
    pub secret: TokenSecret,
    /// The scopes; at least one.
    pub scopes: Vec<Scope>,
    /// The policies that the token permits access to: names, prefixes followed by `*`, or `*`.
    pub policies: Vec<String>,
}

/// A token, or what stands for it.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSecret {
    /// The token itself.
    Text(String),
    /// The file that contains it.
    File(PathBuf),
    /// Its SHA-256 digest.
    Sha256([u8; 32]),
    /// A name of the client certificate that replaces it: a DNS name in lower case, or a URI.
    Certificate(String),
}

/// Omits the token.
impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSecret::Text(_) => f.write_str("Text(***)"),
            TokenSecret::Sha256(_) => f.write_str("Sha256(***)"),
            TokenSecret::Certificate(name) => f.debug_tuple("Certificate").field(name).finish(),
            TokenSecret::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Which clients may operate without a token, if no tokens are configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operators {
    /// Clients on a Unix socket only.
    #[default]
    Tokens,
    /// Clients on this machine too, for development.
    Loopback,
}

/// A permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Make decisions.
    Check,
    /// Reset, block, refund, penalize.
    Operate,
    /// Read state.
    Read,
    /// Everything.
    Admin,
}

impl Scope {
    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Check => "check",
            Scope::Operate => "operate",
            Scope::Read => "read",
            Scope::Admin => "admin",
        }
    }
}

/// Reads the tokens; `listen` is absent if it is invalid.
pub(super) fn read(
    fields: &SectionReader<'_>,
    listen: Option<&Listen>,
) -> Result<Vec<TokenConfig>, Invalid> {
    let mut names = HashSet::new();
    let mut tokens = Vec::new();
    let mut invalid = None;
    for fields in fields.sections("tokens") {
        match token(&fields, listen) {
            Ok(token) if !names.insert(token.name.clone()) => {
                let message =
                    format!("another token has the name {:?}; choose a different name", token.name);
                invalid = Some(fields.report("name", message));
            }
            Ok(token) => tokens.push(token),
            Err(error) => invalid = Some(error),
        }
    }
    invalid.map_or(Ok(tokens), Err)
}

fn token(fields: &SectionReader<'_>, listen: Option<&Listen>) -> Result<TokenConfig, Invalid> {
    let scopes = fields.list("scopes");
    let secret = secret(fields).and_then(|secret| {
        let is_verified =
            |listen: &Listen| listen.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if matches!(secret, TokenSecret::Certificate(_)) && !listen.is_none_or(is_verified) {
            let message = "no listener requests client certificates; add listen.tls.client_ca";
            return Err(fields.report("certificate", message));
        }
        Ok(secret)
    });
    let policies = fields.list("policies")?;
    let name = fields.get::<Option<String>>("name")?.ok_or(Invalid);
    Ok(TokenConfig { name: name?, secret: secret?, scopes: scopes?, policies })
}

fn secret(fields: &SectionReader<'_>) -> Result<TokenSecret, Invalid> {
    let token = fields.get::<Option<String>>("token")?.map(TokenSecret::Text);
    let file = fields.get::<Option<PathBuf>>("token_file")?.map(TokenSecret::File);
    let digest = fields.get::<Option<[u8; 32]>>("token_sha256")?.map(TokenSecret::Sha256);
    let certificate = fields.get::<Option<String>>("certificate")?;
    let certificate = certificate.map(|name| match name.contains(':') {
        true => TokenSecret::Certificate(name),
        false => TokenSecret::Certificate(name.to_ascii_lowercase()),
    });
    let fields_of_secret = [
        ("token", token),
        ("token_file", file),
        ("token_sha256", digest),
        ("certificate", certificate),
    ];
    let mut present =
        fields_of_secret.into_iter().filter_map(|(name, secret)| Some((name, secret?)));
    match (present.next(), present.next()) {
        (Some((_, secret)), None) => Ok(secret),
        (Some((first, _)), Some((second, _))) => {
            let message = format!("{first} and {second} are both set; remove one of the two");
            Err(fields.report(first, message))
        }
        (None, _) => {
            let message = "a token needs token_file, the file that contains it, token_sha256, its \
                           digest, or certificate, a name of a client certificate";
            Err(fields.report("token_file", message))
        }
    }
}
