//! `jwt`: how the tokens that keys are made of are read.

use std::fs;
use std::path::{Path, PathBuf};

use http::header::HeaderName;

use crate::fields::{Broken, Fields};
use tollgate_rules::{Jwt, KeySet, Rules};

/// How tokens are read, if a rule needs any, and the file of the keys.
pub(super) fn read(
    fields: &Fields<'_>,
    rules: Option<&Rules>,
) -> Result<(Option<Jwt>, Option<PathBuf>), Broken> {
    let file: Option<PathBuf> = fields.get("jwks_file")?;
    let base = match (&file, fields.get::<bool>("verify")?) {
        (Some(path), true) => Some(Jwt::signed(key_set(fields, path)?)),
        (None, false) => Some(Jwt::unverified()),
        (Some(_), false) => {
            let message = "verify is false, so no key is looked at; leave one of them out";
            return Err(fields.report("jwks_file", message));
        }
        (None, true) => None,
    };
    let needed = rules.is_some_and(Rules::uses_jwt);
    let Some(jwt) = base else {
        if needed {
            let message = "a rule has {jwt.…}: write the file of the keys that sign tokens, or \
                           verify: false if the gateway has verified them before";
            return Err(fields.report("jwks_file", message));
        }
        return Ok((None, None));
    };
    let header: String = fields.get("header")?;
    let jwt = Jwt {
        header: HeaderName::try_from(header).map_err(|_| Broken)?,
        issuer: fields.get::<Option<String>>("issuer")?.map(Into::into),
        audience: fields.get::<Option<String>>("audience")?.map(Into::into),
        leeway: fields.get("leeway")?,
        ..jwt
    };
    Ok((Some(jwt), file))
}

fn key_set(fields: &Fields<'_>, path: &Path) -> Result<KeySet, Broken> {
    let read = fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"));
    let keys = read.and_then(|x| KeySet::parse(&x));
    keys.map_err(|error| fields.report("jwks_file", format!("{}: {error}", path.display())))
}
