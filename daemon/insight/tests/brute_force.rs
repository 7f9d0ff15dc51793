//! Every query equals a count of what was recorded, in memory, on a server and on a cluster.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::{MemoryLimiter, Timestamp};
use tollgate_config::{Layers, Track};
use tollgate_insight::{
    Insight, Interval, KeyUsage, KeysQuery, MAX_TOTAL, Note, NoteAnswer, Order, QueryError,
    TrackTable, TrackedDecision, Usage,
};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::Clock;
use tollgate_testkit::{Cluster, Reply, Server};

const KEYS: u64 = 3_000;
const ROUNDS: u64 = 12;
const THREADS: u64 = 4;
const PER_THREAD: u64 = 500;
const RECENT: usize = 20;
const MINUTE: u64 = 60_000_000;
const CLOSE: Duration = Duration::from_secs(20);

fn tracks(track: &str) -> BTreeMap<String, Track> {
    let yaml = format!("policies: {{ api: {{ limits: [1/s], track: {track} }} }}");
    Layers::new().named_yaml("tollgate.yaml", &yaml).read().unwrap().config.tracks
}

/// A decision of the load: a few keys get most of them.
#[derive(Clone)]
struct Sample {
    key: String,
    time: u64,
    cost: u64,
    answer: NoteAnswer,
    note: Option<String>,
}

impl Sample {
    /// The sample of this number, at a time of its own.
    fn new(number: u64, end: u64) -> Self {
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ (number >> 3);
        let random = random.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17;
        let key = if random.is_multiple_of(4) { random / 4 % 20 } else { random / 4 % KEYS };
        let answer = NoteAnswer::ALL[usize::try_from(random / 7).unwrap() % NoteAnswer::ALL.len()];
        let total = ROUNDS * THREADS * PER_THREAD;
        Sample {
            key: format!("{}:{key}", if key % 3 == 0 { "user" } else { "ip" }),
            // The last ten minutes, in order.
            time: end - (total - number) * (10 * MINUTE / total),
            cost: random % 5,
            answer,
            note: random.is_multiple_of(11).then(|| format!("note: {number}")),
        }
    }

    fn granted(&self) -> u64 {
        if self.answer == NoteAnswer::Allowed { self.cost } else { 0 }
    }

    fn record(&self, insight: &Insight, table: &TrackTable) {
        let policy = tollgate::Policy::new("api", ["1/s".parse().unwrap()]).unwrap();
        let decision = TrackedDecision {
            key: self.key.as_bytes(),
            time: self.time,
            cost: self.cost,
            granted: self.granted(),
            answer: self.answer,
            note: self.note.as_deref(),
        };
        insight.record(table.get(&policy).unwrap(), &decision);
    }
}

/// What was sent, counted one by one.
#[derive(Default)]
struct Model(BTreeMap<String, Vec<Sample>>);

impl Model {
    fn usage(samples: &[Sample]) -> Usage {
        let times = samples.iter().map(|sample| Timestamp::from_micros(sample.time));
        let is_allowed = |sample: &&Sample| sample.answer == NoteAnswer::Allowed;
        let allowed = samples.iter().filter(is_allowed).count();
        let count = |count: usize| u64::try_from(count).unwrap();
        Usage {
            first_seen: times.clone().min().unwrap(),
            last_seen: times.max().unwrap(),
            allowed: count(allowed),
            denied: count(samples.len() - allowed),
            cost: samples.iter().map(Sample::granted).sum(),
        }
    }

    fn keys(&self, order: Order, prefix: &str) -> Vec<KeyUsage> {
        let matching = self.0.iter().filter(|(key, _)| key.starts_with(prefix));
        let mut keys: Vec<_> = matching
            .map(|(key, samples)| KeyUsage {
                key: key.as_bytes().into(),
                usage: Self::usage(samples),
            })
            .filter(|key| order != Order::MostDenied || key.usage.denied > 0)
            .collect();
        keys.sort_by(|a, b| {
            let (x, y) = (&a.usage, &b.usage);
            match order {
                Order::Newest => (y.last_seen, &b.key).cmp(&(x.last_seen, &a.key)),
                Order::Oldest => (x.last_seen, &a.key).cmp(&(y.last_seen, &b.key)),
                Order::MostUsed => {
                    (y.allowed + y.denied, &b.key).cmp(&(x.allowed + x.denied, &a.key))
                }
                Order::MostDenied => (y.denied, &b.key).cmp(&(x.denied, &a.key)),
            }
        });
        keys
    }

    fn recent(samples: &[Sample]) -> Vec<Note> {
        let mut notes: Vec<_> = samples
            .iter()
            .map(|sample| Note {
                time: Timestamp::from_micros(sample.time),
                cost: sample.cost,
                answer: sample.answer,
                text: sample.note.as_deref().map(Into::into),
            })
            .collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.time));
        notes.truncate(RECENT);
        notes
    }

    fn timeline(samples: &[Sample]) -> Vec<Interval> {
        let mut intervals: BTreeMap<u64, Interval> = BTreeMap::new();
        for sample in samples {
            let start = sample.time - sample.time % MINUTE;
            let interval = intervals.entry(start).or_insert(Interval {
                start: Timestamp::from_micros(start),
                allowed: 0,
                denied: 0,
                cost: 0,
            });
            let is_allowed = sample.answer == NoteAnswer::Allowed;
            interval.allowed += u64::from(is_allowed);
            interval.denied += u64::from(!is_allowed);
            interval.cost += sample.granted();
        }
        intervals.into_values().collect()
    }
}

async fn all_keys(insight: &Insight, order: Order, prefix: &str, limit: usize) -> Vec<KeyUsage> {
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let query = KeysQuery {
            policy: "api",
            order,
            prefix: prefix.as_bytes(),
            cursor: cursor.as_deref(),
            limit,
        };
        let page = insight.keys(query).await.unwrap();
        assert!(page.keys.len() <= limit);
        keys.extend(page.keys);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return keys,
        }
    }
}

/// Records a load from several threads through several writers, and compares every query.
async fn check_load(writers: &[Insight]) {
    let tracks = tracks("{ recent: 20, usage: true, timeline: 1h by 1m }");
    let writers: Vec<_> =
        writers.iter().map(|insight| (insight, insight.configure(&tracks))).collect();
    let end = Clock::system().now().as_micros();
    let mut model = Model::default();
    for round in 0..ROUNDS {
        let sample = |thread: u64, number: u64| {
            // Each thread has later times than in the round before.
            Sample::new((round * PER_THREAD + number) * THREADS + thread, end)
        };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let index = usize::try_from(thread).unwrap() % writers.len();
                let (insight, table) = &writers[index];
                scope.spawn(move || {
                    (0..PER_THREAD).for_each(|n| sample(thread, n).record(insight, table));
                });
            }
        });
        for (insight, _) in &writers {
            assert_eq!(insight.close(CLOSE).await, 0, "not written: {:?}", insight.stats());
            // In memory, a query takes what was recorded.
            assert_eq!(insight.key("api", b"none").await.unwrap(), None);
        }
        for (thread, number) in (0..THREADS).flat_map(|t| (0..PER_THREAD).map(move |n| (t, n))) {
            let sample = sample(thread, number);
            model.0.entry(sample.key.clone()).or_default().push(sample);
        }
    }
    for (insight, _) in &writers {
        assert!(insight.stats().dropped.iter().all(|(_, count)| *count == 0));
    }
    let (insight, _) = writers[0];
    for order in Order::ALL {
        for prefix in ["", "user:", "ip:1", "user:9", "none"] {
            let expected = model.keys(order, prefix);
            let found = all_keys(insight, order, prefix, 97).await;
            assert_eq!(found.len(), expected.len(), "{order:?} {prefix}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{order:?} {prefix}");
            }
        }
    }
    for (key, samples) in &model.0 {
        let record = insight.key("api", key.as_bytes()).await.unwrap().unwrap();
        assert_eq!(record.usage, Some(Model::usage(samples)), "{key}");
        assert_eq!(record.timeline.unwrap().intervals, Model::timeline(samples), "{key}");
        // The notes of several writers arrive in batches, so the last ones by time may be missing.
        if writers.len() == 1 {
            assert_eq!(record.recent, Model::recent(samples), "{key}");
        }
    }
    assert_eq!(insight.key("api", b"none").await.unwrap(), None);
}

async fn store(url: &str) -> RedisStore {
    let store = RedisStore::open(url, RedisOptions::default()).unwrap();
    store.ready().await.unwrap();
    store
}

fn insight(store: Option<&RedisStore>) -> Insight {
    match store {
        Some(store) => Insight::new(&store.clone().into()),
        None => Insight::new(&MemoryLimiter::new().into()),
    }
}

/// Checks that every key of a server expires; returns their number.
fn check_expiry(server: &Server) -> usize {
    let Reply::Array(names) = server.command(&["KEYS", "*"]) else { panic!("KEYS") };
    for name in &names {
        let Reply::Bulk(name) = name else { panic!("{name:?}") };
        let name = String::from_utf8_lossy(name).into_owned();
        if name.ends_with("#groups") {
            continue;
        }
        let ttl = server.command(&["PTTL", &name]);
        assert!(matches!(ttl, Reply::Integer(1..)), "{name} has no expiry: {ttl:?}");
    }
    names.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_in_memory_equal_a_count() {
    check_load(&[insight(None)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_on_a_server_equal_a_count() {
    let server = Server::start();
    let store = store(&server.url()).await;
    check_load(&[insight(Some(&store))]).await;
    assert!(check_expiry(&server) > 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_on_a_cluster_equal_a_count_of_two_writers() {
    let cluster = Cluster::start(3, 0);
    let (first, second) = (store(&cluster.url()).await, store(&cluster.url()).await);
    check_load(&[insight(Some(&first)), insight(Some(&second))]).await;
    let counts: Vec<_> = cluster.nodes().iter().map(check_expiry).collect();
    assert!(counts.iter().all(|count| *count > 500), "unevenly distributed: {counts:?}");
}

/// Records decisions about one key, one a millisecond.
fn record(insight: &Insight, table: &TrackTable, key: &str, decisions: u64) {
    let start = Clock::system().now().as_micros() - decisions * 1_000;
    for number in 0..decisions {
        let (cost, answer, note) = (2, NoteAnswer::Allowed, None);
        let time = start + number * 1_000;
        Sample { key: key.to_owned(), time, cost, answer, note }.record(insight, table);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_reply_was_lost_is_counted_once() {
    let server = Server::start();
    let options =
        RedisOptions { call_timeout: Duration::from_millis(200), ..RedisOptions::default() };
    let store = RedisStore::open(&server.url(), options).unwrap();
    store.ready().await.unwrap();
    let insight = insight(Some(&store));
    let table = insight.configure(&tracks("{ recent: 5, usage: true, timeline: 1h by 1m }"));
    // The server knows the script, so that it executes the next batch without another call.
    record(&insight, &table, "k", 3);
    assert_eq!(insight.close(CLOSE).await, 0);
    record(&insight, &table, "k", 100);
    // The server executes the batch after its reply is no longer awaited.
    server.pause();
    assert_eq!(insight.close(Duration::from_secs(2)).await, 100);
    record(&insight, &table, "k", 7);
    server.resume();
    store.ready().await.unwrap();
    for _ in 0..100 {
        if insight.close(CLOSE).await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let record = insight.key("api", b"k").await.unwrap().unwrap();
    let usage = record.usage.unwrap();
    assert_eq!((usage.allowed, usage.cost), (110, 220));
    let intervals = record.timeline.unwrap().intervals;
    assert_eq!(intervals.iter().map(|interval| interval.allowed).sum::<u64>(), 110);
    assert!(insight.stats().retried > 0);
    assert_eq!(insight.stats().dropped.map(|(_, count)| count), [0, 0, 0]);
}

async fn check_bound(insight: &Insight) {
    let table = insight.configure(&tracks("{ usage: true, max_keys: 100 }"));
    let policy = tollgate::Policy::new("api", ["1/s".parse().unwrap()]).unwrap();
    let start = Clock::system().now().as_micros() - 2_000;
    for number in 0..1_000 {
        let answer = if number < 5 { NoteAnswer::Denied } else { NoteAnswer::Allowed };
        let key = format!("k{number}");
        let decision = TrackedDecision {
            key: key.as_bytes(),
            time: start + number,
            cost: 1,
            granted: 1,
            answer,
            note: None,
        };
        insight.record(table.get(&policy).unwrap(), &decision);
    }
    assert_eq!(insight.close(CLOSE).await, 0);
    let found = all_keys(insight, Order::Newest, "", 50).await;
    assert_eq!(found.len(), 100);
    let denied = all_keys(insight, Order::MostDenied, "", 50).await;
    assert!(denied.len() >= 4, "keys with denials were forgotten first: {denied:?}");
    assert!(insight.stats().evicted >= 900);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_beyond_the_bound_are_forgotten_and_those_with_denials_last() {
    check_bound(&insight(None)).await;
    let server = Server::start();
    let store = store(&server.url()).await;
    check_bound(&insight(Some(&store))).await;
    let Reply::Array(names) = server.command(&["KEYS", "*#xr:*"]) else { panic!("KEYS") };
    assert_eq!(names.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_queries_state_the_remedy() {
    let insight = insight(None);
    let table = insight.configure(&tracks("{ recent: 1 }"));
    record(&insight, &table, "k", 3);
    let query =
        KeysQuery { policy: "api", order: Order::Newest, prefix: b"", cursor: None, limit: 1 };
    let errors = [
        insight.keys(KeysQuery { policy: "other", ..query }).await,
        insight.keys(KeysQuery { order: Order::MostDenied, ..query }).await,
        insight.keys(KeysQuery { limit: 0, ..query }).await,
        insight.keys(KeysQuery { limit: 501, ..query }).await,
        insight.keys(KeysQuery { prefix: &[b'k'; 257], ..query }).await,
        insight.keys(KeysQuery { cursor: Some("0123456700"), ..query }).await,
        insight.keys(KeysQuery { cursor: Some("page 2"), ..query }).await,
    ];
    let messages = errors.map(|error| error.unwrap_err().to_string());
    assert_eq!(
        messages,
        [
            "policy \"other\" tracks nothing; add track: { usage: true } to it and reload",
            "policy \"api\" does not track usage, which the order most-denied needs; add usage: true \
             to its track, or use newest or oldest",
            "limit is 0; it must be from 1 to 500",
            "limit is 501; it must be from 1 to 500",
            "the prefix has 257 bytes and can match no key; keys longer than 256 bytes are not tracked",
            "the cursor is from before a restart of the daemon, or of another daemon; begin again \
             without a cursor",
            "\"page 2\" is no cursor; send the one of the previous page, or none for the first",
        ]
    );
    assert!(matches!(insight.key("other", b"k").await, Err(QueryError::NotTracked(_))));
    let record = insight.key("api", b"k").await.unwrap().unwrap();
    assert_eq!((record.usage, record.recent.len(), record.timeline), (None, 1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_decisions_are_counted() {
    let insight = insight(None);
    let table = insight.configure(&tracks("{ recent: 20, usage: true }"));
    for number in 0..100_000 {
        record(&insight, &table, &format!("key-{number}"), 1);
    }
    record(&insight, &table, &"k".repeat(257), 1);
    insight.close(CLOSE).await;
    let [(_, queue), (_, long), (_, store)] = insight.stats().dropped;
    assert_eq!((long, store), (1, 0));
    assert!(queue > 0, "nothing drained meanwhile");
    let kept = all_keys(&insight, Order::Newest, "", 500).await.len();
    let kept = u64::try_from(kept).unwrap() + insight.stats().evicted;
    assert_eq!(kept + queue, 100_000, "{:?}", insight.stats());
}

/// `used_memory` of a server.
fn used_memory(server: &Server) -> u64 {
    let Reply::Bulk(info) = server.command(&["INFO", "memory"]) else { panic!("INFO") };
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.trim().parse().unwrap()
}

/// Records decisions about each of some keys, in different minutes.
async fn fill(insight: &Insight, track: &str, keys: u64, decisions: u64) {
    let table = insight.configure(&tracks(track));
    let end = Clock::system().now().as_micros();
    for number in 0..decisions {
        for key in 0..keys {
            let (cost, answer, note) = (1, NoteAnswer::Denied, None);
            let time = end - (decisions - number) * MINUTE;
            let sample = Sample { key: format!("user:{key:08}"), time, cost, answer, note };
            sample.record(insight, &table);
        }
        assert_eq!(insight.close(CLOSE).await, 0);
        // Moves the decisions to memory, and counts the bytes. It runs until it is dropped.
        let _ = tokio::time::timeout(Duration::from_millis(1), insight.run()).await;
    }
}

/// `--nocapture` prints the table of DESIGN.md. What Redis itself uses varies by some 100 KB.
#[tokio::test(flavor = "multi_thread")]
async fn tracked_keys_take_the_bytes_that_the_design_states() {
    for (track, keys, decisions, in_memory, on_redis) in [
        ("{ usage: true }", 2_000, 1, 146, 650),
        ("{ usage: true, recent: 20 }", 2_000, 20, 466, 1_038),
        ("{ usage: true, timeline: 24h by 1m }", 2_000, 60, 2_290, 2_323),
        ("{ usage: true, recent: 20, timeline: 24h by 1m }", 100, 1_440, 66_098, 121_900),
    ] {
        let memory = insight(None);
        let bounded = track.replace("true", "true, max_bytes: 4GiB");
        fill(&memory, &bounded, keys, decisions).await;
        assert_eq!(memory.stats().keys, keys);
        let server = Server::start();
        let store = store(&server.url()).await;
        let redis = insight(Some(&store));
        let before = used_memory(&server);
        fill(&redis, track, keys, decisions).await;
        let (memory, redis) = (memory.stats().bytes / keys, (used_memory(&server) - before) / keys);
        println!("{track}, {decisions} decisions: {memory} bytes in memory, {redis} on Redis");
        assert!(memory.abs_diff(in_memory) <= in_memory / 20, "{track}: {memory}");
        assert!(redis.abs_diff(on_redis) <= on_redis / 5, "{track}: {redis}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_was_killed_loses_only_what_it_had_not_written() {
    let server = Server::start();
    let store = store(&server.url()).await;
    let first = insight(Some(&store));
    let table = first.configure(&tracks("{ usage: true }"));
    record(&first, &table, "k", 10);
    assert_eq!(first.close(CLOSE).await, 0);
    record(&first, &table, "k", 3);
    drop(first);
    let second = insight(Some(&store));
    let table = second.configure(&tracks("{ usage: true }"));
    record(&second, &table, "k", 5);
    assert_eq!(second.close(CLOSE).await, 0);
    let record = second.key("api", b"k").await.unwrap().unwrap();
    assert_eq!(record.usage.unwrap().allowed, 15);
}

/// Redis stores a hash with a field of more than 64 bytes in several times the memory.
#[tokio::test(flavor = "multi_thread")]
async fn records_with_large_totals_stay_compact_and_a_reload_keeps_the_totals() {
    let server = Server::start();
    let store = store(&server.url()).await;
    let insight = insight(Some(&store));
    let time = Clock::system().now().as_micros();
    for (number, timeline) in (1..).zip(["24h by 1m", "24h by 1m", "12h by 5m"]) {
        let table = insight.configure(&tracks(&format!("{{ usage: true, timeline: {timeline} }}")));
        let (key, answer) = ("k".to_owned(), NoteAnswer::Allowed);
        Sample { key, time, cost: MAX_TOTAL, answer, note: None }.record(&insight, &table);
        assert_eq!(insight.close(CLOSE).await, 0);
        let record = insight.key("api", b"k").await.unwrap().unwrap();
        let (usage, timeline) = (record.usage.unwrap(), record.timeline.unwrap());
        assert_eq!((usage.allowed, usage.cost), (number, MAX_TOTAL));
        assert_eq!(timeline.intervals[0].allowed, if number == 3 { 1 } else { number });
        let Reply::Array(names) = server.command(&["KEYS", "*#xr:*"]) else { panic!("KEYS") };
        let [Reply::Bulk(name)] = &names[..] else { panic!("{names:?}") };
        let encoding = server.command(&["OBJECT", "ENCODING", str::from_utf8(name).unwrap()]);
        assert_ne!(encoding, Reply::Bulk(b"hashtable".to_vec()), "{usage:?}");
    }
}
