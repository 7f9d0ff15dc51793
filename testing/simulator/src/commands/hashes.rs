//! Commands on hashes. The order of fields is that of their names.

use std::collections::BTreeMap;

use tollgate_testkit::Reply;

use super::{Context, Error, Outcome, WRONG_TYPE, bulk, count, wrong_arity};
use crate::keyspace::Value;

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

fn hash<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<Option<&'a Fields>, Error> {
    match context.value(key) {
        None => Ok(None),
        Some(Value::Hash(fields)) => Ok(Some(fields)),
        Some(_) => Err(WRONG_TYPE),
    }
}

fn hash_mut<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<&'a mut Fields, Error> {
    match context.value_or_insert(key, Value::Hash(BTreeMap::new())) {
        Value::Hash(fields) => Ok(fields),
        _ => Err(WRONG_TYPE),
    }
}

pub(super) fn hget(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let fields = hash(context, &words[1])?;
    Ok(fields.and_then(|fields| fields.get(&words[2])).map_or(Reply::Null, bulk))
}

pub(super) fn hmget(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let fields = hash(context, &words[1])?;
    let read = |name| fields.and_then(|fields| fields.get(name)).map_or(Reply::Null, bulk);
    Ok(Reply::Array(words[2..].iter().map(read).collect()))
}

pub(super) fn hgetall(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let fields = hash(context, &words[1])?.into_iter().flatten();
    Ok(Reply::Array(fields.flat_map(|(name, value)| [bulk(name), bulk(value)]).collect()))
}

pub(super) fn hset(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let (pairs, []) = words[2..].as_chunks::<2>() else { return Err(wrong_arity("hset")) };
    let fields = hash_mut(context, &words[1])?;
    let insert =
        |[name, value]: &&[Vec<u8>; 2]| fields.insert(name.clone(), value.clone()).is_none();
    Ok(count(pairs.iter().filter(insert).count()))
}

pub(super) fn hdel(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let key = &words[1];
    let fields = hash_mut(context, key)?;
    let removed = words[2..].iter().filter(|name| fields.remove(*name).is_some()).count();
    context.keyspace().remove_if_empty(key);
    Ok(count(removed))
}
