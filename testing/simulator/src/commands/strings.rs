//! Commands on strings.

use tollgate_testkit::Reply;

use super::{Context, Error, Outcome, SYNTAX, WRONG_TYPE, bulk, integer, is_word};
use crate::keyspace::{Entry, Value};

fn string<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<Option<&'a [u8]>, Error> {
    match context.value(key) {
        None => Ok(None),
        Some(Value::String(bytes)) => Ok(Some(bytes)),
        Some(_) => Err(WRONG_TYPE),
    }
}

pub(super) fn get(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    Ok(string(context, &words[1])?.map_or(Reply::Null, bulk))
}

pub(super) fn mget(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let read = |key: &Vec<u8>| match string(context, key) {
        Ok(Some(bytes)) => bulk(bytes),
        _ => Reply::Null,
    };
    Ok(Reply::Array(words[1..].iter().map(read).collect()))
}

/// The options of `SET`.
#[derive(Default)]
struct SetOptions {
    if_missing: bool,
    if_exists: bool,
    returns_previous: bool,
    keeps_expiry: bool,
    expires_at: Option<u64>,
}

impl SetOptions {
    fn parse(words: &[Vec<u8>], now: u64) -> Result<Self, Error> {
        let mut options = SetOptions::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let has_expiry = options.keeps_expiry || options.expires_at.is_some();
            if is_word(word, "NX") && !options.if_exists {
                options.if_missing = true;
            } else if is_word(word, "XX") && !options.if_missing {
                options.if_exists = true;
            } else if is_word(word, "GET") {
                options.returns_previous = true;
            } else if is_word(word, "KEEPTTL") && options.expires_at.is_none() {
                options.keeps_expiry = true;
            } else {
                let unit = expiry_unit(word).filter(|_| !has_expiry).ok_or(SYNTAX)?;
                let time = integer(words.next().ok_or(SYNTAX)?)?;
                options.expires_at = Some(expiry(time, unit, now)?);
            }
        }
        Ok(options)
    }
}

/// Returns the unit in ms, and whether the time is relative.
fn expiry_unit(word: &[u8]) -> Option<(u64, bool)> {
    let units = [("PX", 1, true), ("PXAT", 1, false), ("EX", 1_000, true), ("EXAT", 1_000, false)];
    let unit = units.into_iter().find(|(name, ..)| is_word(word, name))?;
    Some((unit.1, unit.2))
}

fn expiry(time: i64, (unit, is_relative): (u64, bool), now: u64) -> Result<u64, Error> {
    let time = u64::try_from(time).ok().filter(|time| *time > 0);
    let time = time.and_then(|time| time.checked_mul(unit));
    let at = time.and_then(|time| time.checked_add(if is_relative { now } else { 0 }));
    let at = at.filter(|at| i64::try_from(*at).is_ok());
    at.ok_or_else(|| "ERR invalid expire time in 'set' command".into())
}

pub(super) fn set(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let now = context.now();
    let (key, value) = (&words[1], &words[2]);
    let options = SetOptions::parse(&words[3..], now)?;
    let previous = match options.returns_previous {
        true => string(context, key)?.map_or(Reply::Null, bulk),
        false => Reply::ok(),
    };
    let current = context.keyspace().get(key, now);
    let exists = current.is_some();
    let kept = current.and_then(|entry| entry.expires_at).filter(|_| options.keeps_expiry);
    if (options.if_missing && exists) || (options.if_exists && !exists) {
        context.rewrite_to_nothing();
        return Ok(if options.returns_previous { previous } else { Reply::Null });
    }
    let expires_at = options.expires_at.or(kept);
    let entry = Entry { value: Value::String(value.clone()), expires_at };
    context.keyspace().insert(key, entry);
    match expires_at {
        Some(at) => context.rewrite(&[b"SET", key, value, b"PXAT", at.to_string().as_bytes()]),
        None => context.rewrite(&[b"SET", key, value]),
    }
    Ok(previous)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_times_out_of_range_are_rejected() {
        assert_eq!(expiry(5, (1_000, true), 7), Ok(5_007));
        assert_eq!(expiry(5, (1, false), 7), Ok(5));
        for time in [0, -1, i64::MAX] {
            assert!(expiry(time, (1, true), 7).is_err(), "{time}");
        }
        assert!(integer(b"01").is_err());
    }
}
