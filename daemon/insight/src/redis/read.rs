//! Queries of the records on Redis.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep};
use tollgate::Timestamp;
use tollgate_redis::{Script, ScriptReply};
use tollgate_state::{Failure, FailureKind};

use super::pending::parse_notes;
use super::{RECORD_KIND, RedisStorage, malformed};
use crate::memory::compare;
use crate::query::{KeysQuery, Order, Position};
use crate::record::{Interval, KeyRecord, KeyUsage, Timeline, Usage};
use crate::tracked::Tracked;

static KEYS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("keys.lua")));
static USAGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("usage.lua")));
static RECORD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("record.lua")));

/// How many members of an index a call visits, in about a millisecond.
const MAX_VISITED: &str = "2000";
/// How long a query is repeated while a slot moves, and the delay between repetitions.
const MAX_MOVE: Duration = Duration::from_secs(3);
const MOVE_DELAY: Duration = Duration::from_millis(20);
/// How many totals a call reads.
const MAX_USAGES: usize = 100;

type Ranked = (u64, Box<[u8]>);

impl RedisStorage {
    /// A page of the keys of a policy after a position, and the position of its end if there are more.
    pub(crate) async fn keys(
        &self,
        tracked: &Tracked,
        query: &KeysQuery<'_>,
        after: Option<&Position>,
        now: Timestamp,
    ) -> Result<(Vec<KeyUsage>, Option<Position>), Failure> {
        let partitions = 0..self.store.partition_count();
        let pages = partitions.map(|partition| self.page(partition, tracked, query, after, now));
        let mut ranked: Vec<Ranked> = try_join_all(pages).await?.into_iter().flatten().collect();
        ranked.sort_unstable_by(|a, b| compare(query.order, (a.0, &a.1), (b.0, &b.1)));
        let has_more = ranked.len() > query.limit;
        ranked.truncate(query.limit);
        let end = ranked.last().filter(|_| has_more);
        let end = end.map(|(rank, key)| Position { rank: *rank, key: key.clone() });
        let mut usages = self.usages(tracked, &ranked).await?;
        let with_usage = ranked.into_iter().filter_map(|(_, key)| {
            // A record that has expired since the index was read is left out.
            let usage = usages.remove(&key)?;
            Some(KeyUsage { key, usage })
        });
        Ok((with_usage.collect(), end))
    }

    /// The keys of one partition.
    async fn page(
        &self,
        partition: u16,
        tracked: &Tracked,
        query: &KeysQuery<'_>,
        after: Option<&Position>,
        now: Timestamp,
    ) -> Result<Vec<Ranked>, Failure> {
        let [seen, used, denied] = self.indexes(partition, tracked);
        let index = match query.order {
            Order::Newest | Order::Oldest => seen.clone(),
            Order::MostUsed => used,
            Order::MostDenied => denied,
        };
        let names = [index, seen];
        let expiry = tracked.expiry(now.as_micros()).to_string();
        let mut found = Vec::new();
        let mut position = after.cloned();
        loop {
            let missing = query.limit + 1 - found.len();
            let is_descending: &[u8] = if query.order.is_descending() { b"1" } else { b"0" };
            let missing = missing.to_string();
            let rank = position.as_ref().map_or_else(String::new, |at| at.rank.to_string());
            let key = position.as_ref().map_or(&[][..], |at| &at.key);
            let arguments = [
                is_descending,
                rank.as_bytes(),
                key,
                query.prefix,
                missing.as_bytes(),
                MAX_VISITED.as_bytes(),
                expiry.as_bytes(),
            ];
            let reply = self.query(partition, &KEYS, &names, &arguments).await?;
            let mut words = words(reply)?.into_iter();
            let (Some(rank), Some(member)) = (words.next(), words.next()) else {
                return Err(malformed());
            };
            while let (Some(member), Some(rank)) = (words.next(), words.next()) {
                found.push((number(&rank)?, member.into()));
            }
            if rank.is_empty() || found.len() > query.limit {
                return Ok(found);
            }
            position = Some(Position { rank: number(&rank)?, key: member.into() });
        }
    }

    /// The totals of keys.
    async fn usages(
        &self,
        tracked: &Tracked,
        keys: &[Ranked],
    ) -> Result<HashMap<Box<[u8]>, Usage>, Failure> {
        let mut by_partition: HashMap<u16, Vec<&[u8]>> = HashMap::new();
        for (_, key) in keys {
            by_partition.entry(self.store.partition_of(key)).or_default().push(key);
        }
        let chunks = by_partition.iter().flat_map(|(partition, keys)| {
            keys.chunks(MAX_USAGES).map(move |keys| (*partition, keys))
        });
        let calls = chunks.map(|(partition, keys)| async move {
            let names: Vec<_> = keys
                .iter()
                .map(|key| self.store.extension_name(partition, &tracked.name, RECORD_KIND, key))
                .collect();
            let reply = self.query(partition, &USAGE, &names, &[]).await?;
            let ScriptReply::List(rows) = reply else { return Err(malformed()) };
            let mut usages = Vec::new();
            for (key, row) in keys.iter().zip(rows) {
                if let [Some(times), Some(counts)] = &optional_words(row)?[..] {
                    usages.push((Box::from(*key), usage(times, counts)?));
                }
            }
            Ok(usages)
        });
        Ok(try_join_all(calls).await?.into_iter().flatten().collect())
    }

    /// Runs a script that only reads, and repeats it while the slot of its keys moves.
    async fn query(
        &self,
        partition: u16,
        script: &Script,
        keys: &[Vec<u8>],
        arguments: &[&[u8]],
    ) -> Result<ScriptReply, Failure> {
        let start = Instant::now();
        let mut has_moved = false;
        loop {
            let reply = self.store.run_script(partition, script, keys, arguments).await;
            let Err(failure) = &reply else { return reply };
            // After a move, the server may be one that is not connected yet.
            has_moved |= failure.kind == FailureKind::TryAgain;
            if !has_moved || start.elapsed() > MAX_MOVE {
                return reply;
            }
            sleep(MOVE_DELAY).await;
        }
    }

    /// The record of a key.
    pub(crate) async fn key(
        &self,
        tracked: &Tracked,
        key: &[u8],
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, Failure> {
        let partition = self.store.partition_of(key);
        let name = self.store.extension_name(partition, &tracked.name, RECORD_KIND, key);
        let reply = self.query(partition, &RECORD, &[name], &[]).await?;
        let fields = words(reply)?;
        if fields.is_empty() {
            return Ok(None);
        }
        parse_record(tracked, &fields, now).map(Some)
    }
}

/// The texts of a list.
pub(super) fn words(reply: ScriptReply) -> Result<Vec<Vec<u8>>, Failure> {
    optional_words(reply)?.into_iter().map(|word| word.ok_or_else(malformed)).collect()
}

/// The texts of a list, where some may be absent.
pub(super) fn optional_words(reply: ScriptReply) -> Result<Vec<Option<Vec<u8>>>, Failure> {
    let ScriptReply::List(list) = reply else { return Err(malformed()) };
    let word = |reply| match reply {
        ScriptReply::Bytes(bytes) => Ok(Some(bytes)),
        ScriptReply::Nil => Ok(None),
        _ => Err(malformed()),
    };
    list.into_iter().map(word).collect()
}

pub(super) fn number(word: &[u8]) -> Result<u64, Failure> {
    str::from_utf8(word).ok().and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

/// The totals of a record.
pub(super) fn usage(times: &[u8], counts: &[u8]) -> Result<Usage, Failure> {
    // The script that writes the record needs what follows the times.
    let (&[first, last, ..], &[allowed, denied, cost]) = (&*numbers(times)?, &*numbers(counts)?)
    else {
        return Err(malformed());
    };
    let [first_seen, last_seen] = [first, last].map(Timestamp::from_micros);
    Ok(Usage { first_seen, last_seen, allowed, denied, cost })
}

/// The numbers of a field.
fn numbers(field: &[u8]) -> Result<Vec<u64>, Failure> {
    field.split(|byte| *byte == b':').map(number).collect()
}

fn parse_record(
    tracked: &Tracked,
    fields: &[Vec<u8>],
    now: Timestamp,
) -> Result<KeyRecord, Failure> {
    let (pairs, _) = fields.as_chunks::<2>();
    let get = |name: &[u8]| pairs.iter().find(|[field, _]| field == name).map(|[_, value]| value);
    let (Some(times), Some(counts)) = (get(b"u"), get(b"c")) else { return Err(malformed()) };
    let usage = usage(times, counts)?;
    let track = &tracked.track;
    let notes = get(b"r").map_or(Some(Vec::new()), |list| parse_notes(list));
    let mut recent = notes.ok_or_else(malformed)?;
    recent.sort_by_key(|note| std::cmp::Reverse(note.time));
    recent.truncate(track.recent);
    let mut intervals = Vec::new();
    for [_, value] in pairs.iter().filter(|[field, _]| field.starts_with(b"t")) {
        intervals.push(interval(value)?);
    }
    let horizon = Timestamp::from_micros(tracked.horizon(now.as_micros()));
    intervals.retain(|interval| interval.start >= horizon);
    intervals.sort_unstable_by_key(|interval| interval.start);
    let timeline =
        track.timeline.map(|timeline| Timeline { interval: timeline.interval, intervals });
    Ok(KeyRecord { usage: track.usage.then_some(usage), recent, timeline })
}

/// An interval: its start in seconds, allowed, denied and cost.
fn interval(value: &[u8]) -> Result<Interval, Failure> {
    let [start, allowed, denied, cost] = numbers(value)?[..] else { return Err(malformed()) };
    let start = Timestamp::from_micros(start.saturating_mul(1_000_000));
    Ok(Interval { start, allowed, denied, cost })
}
