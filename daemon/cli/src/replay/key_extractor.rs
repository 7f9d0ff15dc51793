//! Extracts the key of every line with the same template.

use std::net::Ipv4Addr;

use tollgate::MAX_KEY_LEN;
use tollgate_replay::log::Line;
use tollgate_replay::{LogCheck, LogRequest, PlainCheck, RequestExtractor, Skip, operations};
use tollgate_server::rules::{Path, Source, Template};

use super::context::{ExtractContext, skip_reason};

/// Checks every line under one policy, with a key from a template or from the log.
#[derive(Debug)]
pub(super) struct KeyExtractor {
    /// The template; without it, the key is the field `key` of the log, or the address.
    pub(super) template: Option<Template>,
    pub(super) context: ExtractContext,
}

impl KeyExtractor {
    /// Appends the key of a line.
    fn key(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<(), Skip> {
        let start = key.len();
        let Some(template) = &self.template else {
            if let Some(field) = line.key.filter(|key| !key.is_empty()) {
                key.extend_from_slice(field);
                return check_length(key.len() - start);
            }
            return self.address(line, key);
        };
        if template.is_only(&Source::Ip) {
            return self.address(line, key);
        }
        self.context.with_facts(line, |facts| {
            let path = Path::decoded(facts.target);
            key.extend(template.key(facts, &path, MAX_KEY_LEN).map_err(skip_reason)?);
            check_length(key.len() - start)
        })
    }

    /// Appends the client's address, or its network.
    fn address(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<(), Skip> {
        let text = line.address.ok_or(Skip::NoKey)?;
        // An IPv4 address has only one spelling, which is that of the key.
        if std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok()) {
            key.extend_from_slice(text);
            return Ok(());
        }
        key.extend_from_slice(self.context.address(text).ok_or(Skip::NoKey)?.as_bytes());
        Ok(())
    }
}

/// Checks the length of a key.
fn check_length(length: usize) -> Result<(), Skip> {
    match length {
        0 => Err(Skip::NoKey),
        length if length > MAX_KEY_LEN => {
            Err(Skip::Invalid(format!("the key has {length} bytes; at most {MAX_KEY_LEN}")))
        }
        _ => Ok(()),
    }
}

impl RequestExtractor for KeyExtractor {
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip> {
        if line.field("verb").is_some_and(|field| !field.is_empty() && field != b"check") {
            return Err(Skip::Invalid(
                "the line has an operation, but the first lines had none; use --verbs".to_owned(),
            ));
        }
        self.key(line, key)?;
        Ok(PlainCheck { policy: 0, cost: operations::cost(line)? })
    }

    fn request(&self, line: &Line<'_>, number: u64) -> Result<LogRequest, Skip> {
        let mut key = Vec::new();
        self.key(line, &mut key)?;
        let operation = operations::operation(line, number)?;
        let checks =
            vec![LogCheck { policy: 0, variant: None, key, cost: operations::cost(line)? }];
        Ok(LogRequest { operation, checks, request_id: operations::request_id(line) })
    }
}
