//! `tokens`.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use crate::fields::{Invalid, SectionReader};

/// An access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The unique name of the token in the audit log.
    pub name: String,
    /// The token, or the file that contains it.
    pub secret: TokenSecret,
    /// The scopes; at least one.
    pub scopes: Vec<Scope>,
    /// The policies that the token permits access to: names, prefixes followed by `*`, or `*`.
    pub policies: Vec<String>,
}

/// A token, or the file that contains it.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSecret {
    /// The token itself.
    Text(String),
    /// The file that contains it.
    File(PathBuf),
}

/// Omits the token.
impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSecret::Text(_) => f.write_str("Text(***)"),
            TokenSecret::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
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

pub(super) fn read(fields: &SectionReader<'_>) -> Result<Vec<TokenConfig>, Invalid> {
    let mut names = HashSet::new();
    let mut tokens = Vec::new();
    let mut invalid = None;
    for fields in fields.sections("tokens") {
        match token(&fields) {
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

fn token(fields: &SectionReader<'_>) -> Result<TokenConfig, Invalid> {
    let scopes = fields.list("scopes");
    let secret = match (fields.get("token")?, fields.get::<Option<PathBuf>>("token_file")?) {
        (Some(token), None) => Ok(TokenSecret::Text(token)),
        (None, Some(file)) => Ok(TokenSecret::File(file)),
        (Some(_), Some(_)) => {
            Err(fields.report("token", "token and token_file are both set; remove one of the two"))
        }
        (None, None) => {
            let message = "a token needs token_file, the file that contains it";
            Err(fields.report("token_file", message))
        }
    };
    let policies = fields.list("policies")?;
    let name = fields.get::<Option<String>>("name")?.ok_or(Invalid);
    Ok(TokenConfig { name: name?, secret: secret?, scopes: scopes?, policies })
}
