//! Records and queries while the slot of their keys moves from node to node of a cluster.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use tollgate::Policy;
use tollgate_config::Layers;
use tollgate_insight::{Insight, KeysQuery, NoteAnswer, Order, TrackTable, TrackedDecision};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::Clock;
use tollgate_testkit::{Cluster, slot_of};

const CONFIG: &str =
    "policies: { api: { limits: [1/s], track: { recent: 5, usage: true, timeline: 1h by 1m } } }";
const CLOSE: Duration = Duration::from_secs(20);

/// Moves a slot four times, one key before the others, with a pause in each state of a move.
fn move_repeatedly(cluster: &Cluster, slot: u16, first: &[u8]) {
    let pause = || std::thread::sleep(Duration::from_millis(100));
    for to in (0..3).cycle().skip(cluster.primary_of_slot(slot) + 1).take(4) {
        let slot_move = cluster.begin_move(slot, to);
        slot_move.migrate(&[first]);
        pause();
        slot_move.migrate_all();
        pause();
        slot_move.finish();
        pause();
    }
}

fn record(insight: &Insight, table: &TrackTable) {
    let policy = Policy::new("api", ["1/s".parse().unwrap()]).unwrap();
    let time = Clock::system().now().as_micros();
    let (key, answer) = (b"k", NoteAnswer::Allowed);
    let decision = TrackedDecision { key, time, cost: 2, granted: 2, answer, note: None };
    insight.record(table.get(&policy).unwrap(), &decision);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_fails_no_query_and_loses_no_record() {
    let cluster = Arc::new(Cluster::start(3, 0));
    let store = RedisStore::open(&cluster.url(), RedisOptions::default()).unwrap();
    store.ready().await.unwrap();
    let insight = Insight::new(&store.clone().into());
    let config = Layers::new().named_yaml("tollgate.yaml", CONFIG).read().unwrap().config;
    let table = insight.configure(&config.tracks);
    let query = || {
        let (policy, order, limit) = ("api", Order::MostUsed, 10);
        insight.keys(KeysQuery { policy, order, prefix: b"", cursor: None, limit })
    };
    let mut recorded = 0;
    let mut check = async || {
        record(&insight, &table);
        recorded += 1;
        assert_eq!(insight.close(CLOSE).await, 0);
        let keys = query().await.unwrap().keys;
        assert_eq!(
            (keys.len(), keys[0].usage.allowed, keys[0].usage.cost),
            (1, recorded, 2 * recorded)
        );
        let found = insight.key("api", b"k").await.unwrap().unwrap();
        assert_eq!(found.usage.as_ref(), Some(&keys[0].usage));
    };
    check().await;
    let name =
        |kind, text: &[u8]| store.extension_name(store.partition_of(b"k"), "api", kind, text);
    let (slot, index) = (slot_of(name("k", b"k")), name("i", b"used"));
    let moved = Arc::clone(&cluster);
    let moves = tokio::task::spawn_blocking(move || move_repeatedly(&moved, slot, &index));
    let checks = async {
        while !moves.is_finished() {
            check().await;
        }
    };
    // A check waits until its record is written, and so until the slot is on one node again.
    let queries = async {
        while !moves.is_finished() {
            query().await.unwrap();
        }
    };
    tokio::join!(checks, queries);
    moves.await.unwrap();
    check().await;
    assert_eq!(insight.stats().dropped.map(|(_, count)| count), [0, 0, 0]);
}
