//! Commands on sorted sets.

use tollgate_testkit::Reply;

use super::{
    Context, Error, NOT_FLOAT, Outcome, SYNTAX, WRONG_TYPE, bulk, count, index_range, integer,
    is_word,
};
use crate::keyspace::{Score, SortedSet, Value};

fn set<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<Option<&'a SortedSet>, Error> {
    match context.value(key) {
        None => Ok(None),
        Some(Value::SortedSet(set)) => Ok(Some(set)),
        Some(_) => Err(WRONG_TYPE),
    }
}

fn set_mut<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<&'a mut SortedSet, Error> {
    match context.value_or_insert(key, Value::SortedSet(SortedSet::default())) {
        Value::SortedSet(set) => Ok(set),
        _ => Err(WRONG_TYPE),
    }
}

fn parse_score(word: &[u8]) -> Option<Score> {
    let score: f64 = str::from_utf8(word).ok()?.parse().ok()?;
    (!score.is_nan()).then_some(Score(score))
}

/// Integers have no fraction and no exponent, as in Redis.
fn score_text(score: Score) -> Reply {
    bulk(score.0.to_string())
}

pub(super) fn zadd(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let (pairs, []) = words[2..].as_chunks::<2>() else { return Err(SYNTAX) };
    let parse = |[score, _]: &[Vec<u8>; 2]| parse_score(score).ok_or(NOT_FLOAT);
    let scores = pairs.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let set = set_mut(context, &words[1])?;
    let members = pairs.iter().map(|[_, member]| member).zip(scores);
    Ok(count(members.filter(|(member, score)| set.insert(member, *score)).count()))
}

pub(super) fn zrem(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let key = &words[1];
    let set = set_mut(context, key)?;
    let removed = words[2..].iter().filter(|member| set.remove(member)).count();
    context.keyspace().remove_if_empty(key);
    Ok(count(removed))
}

pub(super) fn zcard(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    Ok(count(set(context, &words[1])?.map_or(0, SortedSet::len)))
}

pub(super) fn zscore(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let set = set(context, &words[1])?;
    Ok(set.and_then(|set| set.score(&words[2])).map_or(Reply::Null, score_text))
}

/// Converts members into a reply, with their scores if requested.
fn members<'a>(members: impl Iterator<Item = &'a (Score, Vec<u8>)>, has_scores: bool) -> Reply {
    let parts = members.flat_map(|(score, member)| {
        [Some(bulk(member)), has_scores.then(|| score_text(*score))].into_iter().flatten()
    });
    Reply::Array(parts.collect())
}

pub(super) fn zrange(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let has_scores = match &words[4..] {
        [] => false,
        [word] if is_word(word, "WITHSCORES") => true,
        _ => return Err(SYNTAX),
    };
    let (start, end) = (integer(&words[2])?, integer(&words[3])?);
    let Some(set) = set(context, &words[1])? else { return Ok(Reply::Array(Vec::new())) };
    let range = index_range(start, end, set.len());
    Ok(members(set.iter().skip(range.start).take(range.len()), has_scores))
}

/// A bound of scores; `(` excludes the number itself.
struct Bound {
    score: Score,
    is_exclusive: bool,
}

impl Bound {
    fn parse(word: &[u8]) -> Result<Self, Error> {
        let (number, is_exclusive) = match word.split_first() {
            Some((b'(', number)) => (number, true),
            _ => (word, false),
        };
        let score = parse_score(number).ok_or("ERR min or max is not a float")?;
        Ok(Bound { score, is_exclusive })
    }
}

fn score_range(min: &[u8], max: &[u8]) -> Result<impl Fn(&&(Score, Vec<u8>)) -> bool, Error> {
    let (min, max) = (Bound::parse(min)?, Bound::parse(max)?);
    Ok(move |(score, _): &&(Score, Vec<u8>)| {
        let is_above = if min.is_exclusive { *score > min.score } else { *score >= min.score };
        let is_below = if max.is_exclusive { *score < max.score } else { *score <= max.score };
        is_above && is_below
    })
}

pub(super) fn zcount(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let is_within = score_range(&words[2], &words[3])?;
    let found = set(context, &words[1])?.into_iter().flat_map(SortedSet::iter);
    Ok(count(found.filter(is_within).count()))
}

/// The options of a range: whether scores are returned, the offset and the number of members.
fn range_options(mut options: &[Vec<u8>]) -> Result<(bool, usize, usize), Error> {
    let (mut has_scores, mut offset, mut limit) = (false, 0, usize::MAX);
    while let Some((word, rest)) = options.split_first() {
        options = rest;
        if is_word(word, "WITHSCORES") {
            has_scores = true;
        } else if let (true, [first, number, rest @ ..]) = (is_word(word, "LIMIT"), options) {
            // A negative offset selects nothing, a negative number everything.
            offset = usize::try_from(integer(first)?).unwrap_or(usize::MAX);
            limit = usize::try_from(integer(number)?).unwrap_or(usize::MAX);
            options = rest;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok((has_scores, offset, limit))
}

pub(super) fn zrangebyscore(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let (has_scores, offset, limit) = range_options(&words[4..])?;
    let is_within = score_range(&words[2], &words[3])?;
    let found = set(context, &words[1])?.into_iter().flat_map(SortedSet::iter);
    Ok(members(found.filter(is_within).skip(offset).take(limit), has_scores))
}

pub(super) fn zrevrangebyscore(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let (has_scores, offset, limit) = range_options(&words[4..])?;
    let is_within = score_range(&words[3], &words[2])?;
    let found = set(context, &words[1])?.into_iter().flat_map(SortedSet::iter);
    let mut found: Vec<_> = found.filter(is_within).collect();
    found.reverse();
    Ok(members(found.into_iter().skip(offset).take(limit), has_scores))
}
