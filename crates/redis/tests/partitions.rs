//! Real servers in network namespaces: packets to one node of a cluster are lost or delayed. Only its
//! keys are affected, and only as long as that lasts.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use support::{check, open, policy};
use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Policy, Request};
use tollgate_redis::{RedisStore, Reply, TimedRequest};
use tollgate_testkit::{Cluster, Network, wait_until};

/// How long a node is isolated.
const ISOLATION: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_millis(250);
/// Within the timeout of a call, so that connections remain.
const DELAY: Duration = Duration::from_millis(375);
/// The index of the node that is affected.
const AFFECTED: u8 = 1;

/// A store on a cluster in a network, and keys of which every node has some.
struct Fixture {
    store: RedisStore,
    limits: Policy,
    keys: Vec<Key>,
    // Dropped in this order: the servers end before their hosts.
    _cluster: Cluster,
    network: Network,
}

struct Key {
    name: String,
    /// Whether the key is on the node that is affected.
    is_affected: bool,
}

impl Fixture {
    async fn start() -> Option<Self> {
        let network = Network::create(3)?;
        let cluster = Cluster::start_on(&network);
        let store = open(&cluster.url());
        let limits = policy("1000000/d fixed");
        let names: Vec<String> = (0..48).map(|number| format!("key:{number}")).collect();
        for name in &names {
            let _ = check(&store, &limits, name.as_bytes()).await.unwrap();
        }
        let affected = cluster.nodes()[usize::from(AFFECTED)].keys("tollgate");
        let key = |name: String| {
            let suffix = format!(":{name}");
            let is_affected = affected.iter().any(|stored| stored.ends_with(&suffix));
            Key { name, is_affected }
        };
        let keys = names.into_iter().map(key).collect();
        Some(Fixture { store, limits, keys, _cluster: cluster, network })
    }

    /// Checks all keys at once; returns for each whether the store answered in time.
    async fn check_all(&self) -> Vec<bool> {
        let names = self.keys.iter().map(|key| key.name.as_bytes());
        let check = |key| [Check { policy: &self.limits, key, cost: Cost::ONE }];
        let checks: Vec<_> = names.map(check).collect();
        let deadline = Instant::now() + DEADLINE;
        let timed = |checks| {
            let request = Request { operation: support::CHECK, checks, request_id: None };
            TimedRequest { request, deadline }
        };
        let timed: Vec<_> = checks.iter().map(|checks| timed(checks)).collect();
        let replies = self.store.decide_by(&timed).await;
        replies.iter().map(|reply| matches!(reply, Reply::Answer(Ok(_)))).collect()
    }

    /// Asserts that only the keys of the affected node are not answered.
    async fn assert_affected(&self) {
        for (key, is_answered) in self.keys.iter().zip(self.check_all().await) {
            assert_eq!(is_answered, !key.is_affected, "{}", key.name);
        }
    }

    async fn wait_until_answered(&self) {
        wait_until("answers for all keys", async || {
            self.check_all().await.iter().all(|is_answered| *is_answered)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_isolated_node_affects_only_its_own_keys_and_recovers() {
    let Some(fixture) = Fixture::start().await else { return };
    fixture.network.isolate(AFFECTED);
    let until = Instant::now() + ISOLATION;
    while Instant::now() < until {
        fixture.assert_affected().await;
    }
    fixture.network.reconnect(AFFECTED);
    fixture.wait_until_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_distant_node_affects_only_its_own_keys() {
    let Some(fixture) = Fixture::start().await else { return };
    if !fixture.network.delay(AFFECTED, DELAY) {
        return;
    }
    for _ in 0..5 {
        fixture.assert_affected().await;
    }
    assert!(fixture.network.delay(AFFECTED, Duration::ZERO));
    fixture.wait_until_answered().await;
}
