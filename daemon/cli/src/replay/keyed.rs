//! Whose line it is, by one template for all lines.

use std::net::Ipv4Addr;

use tollgate::MAX_KEY_LEN;
use tollgate_replay::log::Line;
use tollgate_replay::{Ask, Asked, AskedCheck, NotAsked, One, verbs};
use tollgate_server::rules::{Path, Source, Template};

use super::facts::{Sight, not_asked};

/// All lines are asked under one policy, whose key a template makes, or the log tells.
#[derive(Debug)]
pub(super) struct Keyed {
    /// How the key is made; without it, it is what the log calls the key, or else the address.
    pub(super) template: Option<Template>,
    pub(super) sight: Sight,
}

impl Keyed {
    /// Appends the key of a line.
    fn key(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<(), NotAsked> {
        let start = key.len();
        let Some(template) = &self.template else {
            if let Some(told) = line.key.filter(|key| !key.is_empty()) {
                key.extend_from_slice(told);
                return held(key.len() - start);
            }
            return self.address(line, key);
        };
        if template.is_only(&Source::Ip) {
            return self.address(line, key);
        }
        self.sight.facts(line, |facts| {
            let path = Path::decoded(facts.target);
            key.extend(template.key(facts, &path, MAX_KEY_LEN).map_err(not_asked)?);
            held(key.len() - start)
        })
    }

    /// The client's address, or its network.
    fn address(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<(), NotAsked> {
        let text = line.address.ok_or(NotAsked::NoKey)?;
        // There is but one way to write an IPv4 address, which is that of a key.
        if std::str::from_utf8(text).is_ok_and(|x| x.parse::<Ipv4Addr>().is_ok()) {
            key.extend_from_slice(text);
            return Ok(());
        }
        key.extend_from_slice(self.sight.address(text).ok_or(NotAsked::NoKey)?.as_bytes());
        Ok(())
    }
}

/// Holds a key to the length that it may have.
fn held(length: usize) -> Result<(), NotAsked> {
    match length {
        0 => Err(NotAsked::NoKey),
        length if length > MAX_KEY_LEN => Err(NotAsked::Broken(format!(
            "its key has {length} bytes; at most {MAX_KEY_LEN} are one"
        ))),
        _ => Ok(()),
    }
}

impl Ask for Keyed {
    fn one(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<One, NotAsked> {
        if line.field("verb").is_some_and(|field| !field.is_empty() && field != b"check") {
            return Err(NotAsked::Broken(
                "it has a verb, and the first lines had none; say --verbs".to_owned(),
            ));
        }
        self.key(line, key)?;
        Ok(One { policy: 0, cost: verbs::cost(line)? })
    }

    fn any(&self, line: &Line<'_>, number: u64) -> Result<Asked, NotAsked> {
        let mut key = Vec::new();
        self.key(line, &mut key)?;
        let verb = verbs::verb(line, number)?;
        let checks = vec![AskedCheck { policy: 0, form: None, key, cost: verbs::cost(line)? }];
        Ok(Asked { verb, checks, request_id: verbs::request_id(line) })
    }
}
