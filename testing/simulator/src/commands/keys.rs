//! Commands on keys of any type.

use tollgate_testkit::Reply;

use super::{Context, Error, Outcome, count, integer};

pub(super) fn del(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let now = context.now();
    let keyspace = context.keyspace();
    Ok(count(words[1..].iter().filter(|key| keyspace.remove(key, now)).count()))
}

pub(super) fn exists(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    Ok(count(words[1..].iter().filter(|key| context.value(key).is_some()).count()))
}

pub(super) fn type_name(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let name = context.value(&words[1]).map_or("none", |value| value.type_name());
    Ok(Reply::Simple(name.to_owned()))
}

pub(super) fn pttl(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let now = context.now();
    Ok(Reply::Integer(match context.keyspace().get(&words[1], now) {
        None => -2,
        Some(entry) => match entry.expires_at {
            None => -1,
            Some(at) => i64::try_from(at - now).unwrap_or(i64::MAX),
        },
    }))
}

pub(super) fn pexpire(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let now = i64::try_from(context.now()).unwrap_or(i64::MAX);
    let time = integer(&words[2])?;
    expire(context, words, time.checked_add(now), "pexpire")
}

pub(super) fn pexpireat(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let time = integer(&words[2])?;
    expire(context, words, Some(time), "pexpireat")
}

fn expire(context: &mut Context<'_>, words: &[Vec<u8>], at: Option<i64>, name: &str) -> Outcome {
    if let Some(option) = words.get(3) {
        let option = String::from_utf8_lossy(option);
        return Err(format!("ERR Unsupported option {option}").into());
    }
    let invalid = || Error::from(format!("ERR invalid expire time in '{name}' command"));
    let at = at.ok_or_else(invalid)?;
    let (key, now) = (&words[1], context.now());
    let Some(entry) = context.keyspace().get_mut(key, now) else {
        context.rewrite_to_nothing();
        return Ok(Reply::Integer(0));
    };
    match u64::try_from(at).ok().filter(|at| *at > now) {
        Some(at) => {
            entry.expires_at = Some(at);
            context.rewrite(&[b"PEXPIREAT", key, at.to_string().as_bytes()]);
        }
        None => {
            context.keyspace().remove(key, now);
            context.rewrite(&[b"DEL", key]);
        }
    }
    Ok(Reply::Integer(1))
}
