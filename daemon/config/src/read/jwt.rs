//! `jwt`.

use std::fs;
use std::path::{Path, PathBuf};

use http::header::HeaderName;

use crate::fields::{Invalid, SectionReader};
use tollgate_rules::{Jwt, KeySet, Rules};

/// The validation of tokens, if configured, and the file with the keys.
pub(super) fn read(
    fields: &SectionReader<'_>,
    rules: Option<&Rules>,
) -> Result<(Option<Jwt>, Option<PathBuf>), Invalid> {
    let file: Option<PathBuf> = fields.get("jwks_file")?;
    let base = match (&file, fields.get::<bool>("verify")?) {
        (Some(path), true) => Some(Jwt::signed(key_set(fields, path)?)),
        (None, false) => Some(Jwt::unverified()),
        (Some(_), false) => {
            let message = "with verify: false no key is used; remove one of the two";
            return Err(fields.report("jwks_file", message));
        }
        (None, true) => None,
    };
    let needed = rules.is_some_and(Rules::uses_jwt);
    let Some(jwt) = base else {
        if needed {
            let message = "a rule uses {jwt.…}; set the file with the issuer's keys, or verify: \
                           false if the gateway has verified the token";
            return Err(fields.report("jwks_file", message));
        }
        return Ok((None, None));
    };
    let header: String = fields.get("header")?;
    let jwt = Jwt {
        header: HeaderName::try_from(header).map_err(|_| Invalid)?,
        issuer: fields.get::<Option<String>>("issuer")?.map(Into::into),
        audience: fields.get::<Option<String>>("audience")?.map(Into::into),
        leeway: fields.get("leeway")?,
        ..jwt
    };
    Ok((Some(jwt), file))
}

fn key_set(fields: &SectionReader<'_>, path: &Path) -> Result<KeySet, Invalid> {
    let read = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
    let keys = read.and_then(|x| KeySet::parse(&x));
    keys.map_err(|error| fields.report("jwks_file", format!("{}: {error}", path.display())))
}
