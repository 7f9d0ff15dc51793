//! `tokens`.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use crate::fields::{Broken, Fields};

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// What it is called in the audit log; no two have one name.
    pub name: String,
    /// The token, or where it is.
    pub secret: TokenSecret,
    /// What it may do; one thing at least.
    pub scopes: Vec<Scope>,
    /// The policies it is good for: names, beginnings of names with a star, or `*`.
    pub policies: Vec<String>,
}

/// A token, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSecret {
    /// The token itself.
    Text(String),
    /// The file that holds it.
    File(PathBuf),
}

/// Without the token.
impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSecret::Text(_) => f.write_str("Text(***)"),
            TokenSecret::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Ask and spend.
    Check,
    /// Reset, block, refund, penalize.
    Operate,
    /// Look.
    Read,
    /// Everything.
    Admin,
}

impl Scope {
    /// The word that stands for it.
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

pub(super) fn read(fields: &Fields<'_>) -> Result<Vec<TokenConfig>, Broken> {
    let mut names = HashSet::new();
    let mut tokens = Vec::new();
    let mut broken = None;
    for fields in fields.sections("tokens")? {
        match token(&fields) {
            Ok(token) if !names.insert(token.name.clone()) => {
                let message = format!("another token is called {} already", token.name);
                broken = Some(fields.report("name", message));
            }
            Ok(token) => tokens.push(token),
            Err(error) => broken = Some(error),
        }
    }
    broken.map_or(Ok(tokens), Err)
}

fn token(fields: &Fields<'_>) -> Result<TokenConfig, Broken> {
    let scopes =
        fields.list("scopes").map(|list| list.iter().filter_map(|i| scope(&i.text)).collect());
    let secret = match (fields.get("token")?, fields.get("token_file")?) {
        (Some(token), None) => Ok(TokenSecret::Text(token)),
        (None, Some(file)) => Ok(TokenSecret::File(file)),
        (Some(String { .. }), Some(PathBuf { .. })) => {
            Err(fields.report("token", "write token or token_file, not both"))
        }
        (None, None) => Err(fields.report("token_file", "write the file that holds the token")),
    };
    let policies = fields.list("policies")?.into_iter().map(|list| list.text).collect();
    let name = fields.get::<Option<String>>("name")?.ok_or(Broken);
    Ok(TokenConfig { name: name?, secret: secret?, scopes: scopes?, policies })
}

fn scope(text: &str) -> Option<Scope> {
    match text {
        "check" => Some(Scope::Check),
        "operate" => Some(Scope::Operate),
        "read" => Some(Scope::Read),
        "admin" => Some(Scope::Admin),
        _ => None,
    }
}
