//! Requests over two partitions that are repeated until they are answered, and what must hold for them.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore, Reply, TimedRequest};
use tollgate_simulator::{Cluster, World};
use tollgate_state::Key;

const CHECK: Operation = Operation::Check { lease: None };
const REQUESTS: u64 = 16;
/// The limit that all requests share.
const LIMIT: u64 = 5;
/// The clients run at whole milliseconds.
const TICK: Duration = Duration::from_millis(1);

fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, tollgate_algorithms::parse_limits(limits).unwrap()).unwrap()
}

/// The policy of the key that all requests share, and of the key of each.
pub(crate) struct Policies {
    shared: Policy,
    pub(crate) own: Policy,
}

impl Policies {
    pub(crate) fn new() -> Self {
        Policies { shared: named("shared", "5/d fixed"), own: named("own", "9/d fixed") }
    }
}

/// Opens a store on a client of its own.
pub(crate) async fn open(world: &World, cluster: &Cluster) -> RedisStore {
    let call_timeout = Duration::from_millis(100);
    let options = RedisOptions { groups: Some(8), call_timeout, ..world.options() };
    let store = RedisStore::open(&cluster.url(), options).unwrap();
    store.ready().await.unwrap();
    store
}

/// Sends a request; returns whether it was admitted, if the store answered in time.
pub(crate) async fn decide(
    store: &RedisStore,
    checks: &[Check<'_>],
    request_id: Option<&[u8]>,
    timeout: Duration,
) -> Option<bool> {
    let request = Request { operation: CHECK, checks, request_id };
    let deadline = Instant::now() + timeout;
    let reply = store.decide_by(&[TimedRequest { request, deadline }]).await.remove(0);
    assert!(Instant::now() <= deadline + TICK, "a request is answered by its deadline");
    match reply {
        Reply::Answer(answer) => answer.ok().map(|answer| answer.allowed()),
        Reply::Late(_) => None,
    }
}

async fn send(store: &RedisStore, policies: &Policies, id: u64, timeout: Duration) -> Option<bool> {
    let own_key = format!("own:{id}");
    let shared = Check { policy: &policies.shared, key: b"shared", cost: Cost::ONE };
    let own = Check { policy: &policies.own, key: own_key.as_bytes(), cost: Cost::ONE };
    // The order of the checks determines the partition that decides.
    let checks = if id.is_multiple_of(2) { [shared, own] } else { [own, shared] };
    decide(store, &checks, Some(format!("id:{id}").as_bytes()), timeout).await
}

/// The answers to a request and its repeats.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    is_admitted: bool,
    /// Whether a repeat was denied after the admission.
    is_reversed: bool,
    /// How often the request was sent.
    sent: u64,
}

/// The faults that change what a store promises.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Each loses at most the limit of a key.
    pub(crate) failovers: u64,
    /// Meanwhile, request ids of the slot are not recorded.
    pub(crate) slot_moves: u64,
}

/// Sends a request until it is answered, from different stores and sometimes from two at once.
async fn send_until_answered(world: World, stores: Vec<RedisStore>, id: u64) -> Answers {
    let policies = Policies::new();
    let mut rng = world.rng();
    tokio::time::sleep(Duration::from_millis(rng.u64(0..2_000))).await;
    let mut answers = Answers::default();
    // After an admission, a repeat gets the same answer.
    let mut repeats = 0;
    while repeats < 2 {
        let timeout = Duration::from_millis(rng.u64(1..60));
        let store = &stores[rng.usize(..stores.len())];
        answers.sent += 1;
        let now = if rng.u8(0..4) == 0 {
            answers.sent += 1;
            let other = &stores[rng.usize(..stores.len())];
            let (first, second) = tokio::join!(
                send(store, &policies, id, timeout),
                send(other, &policies, id, timeout),
            );
            // One of two attempts may be denied before the other takes its tokens.
            first.max(second)
        } else {
            send(store, &policies, id, timeout).await
        };
        if now == Some(false) && !answers.is_admitted {
            return answers;
        }
        answers.is_reversed |= now == Some(false);
        answers.is_admitted |= now == Some(true);
        repeats += u8::from(answers.is_admitted);
        tokio::time::sleep(Duration::from_millis(rng.u64(0..300))).await;
    }
    answers
}

/// Returns what is used of a key's limit.
pub(crate) async fn used(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    loop {
        match store.inspect(policy, Key::new(key.as_bytes()).unwrap()).await {
            Ok(inspection) => return inspection.limits[0].used,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The answers to all requests.
pub(crate) struct Workload(Vec<Answers>);

impl Workload {
    /// Sends all requests until they are answered.
    pub(crate) async fn run(world: &World, stores: &[RedisStore]) -> Self {
        let send = |id| tokio::spawn(send_until_answered(world.clone(), stores.to_vec(), id));
        let requests: Vec<_> = (0..REQUESTS).map(send).collect();
        let mut answers = Vec::new();
        for request in requests {
            answers.push(request.await.unwrap());
        }
        Workload(answers)
    }

    /// Asserts that what was admitted was charged once in every partition, and no more than the limit,
    /// except for the effects of faults. No faults occur any more. Returns how many requests were
    /// admitted.
    pub(crate) async fn check(&self, store: &RedisStore, faults: Faults) -> u64 {
        // Attempts in the background end.
        tokio::time::sleep(Duration::from_secs(40)).await;
        let policies = Policies::new();
        let Faults { failovers, slot_moves } = faults;
        for (id, answers) in self.0.iter().enumerate() {
            let used = used(store, &policies.own, &format!("own:{id}")).await;
            let is_lost = used == 0 && answers.is_admitted;
            let max = if slot_moves > 0 { answers.sent } else { 1 };
            assert!(used <= max, "id:{id} was charged {used} times");
            assert!(!is_lost || failovers > 0, "id:{id} was admitted and not charged");
            let is_excused = failovers + slot_moves > 0;
            assert!(!answers.is_reversed || is_excused, "the repeat of id:{id} was denied");
        }
        let admitted = self.0.iter().map(|answers| u64::from(answers.is_admitted)).sum::<u64>();
        let charged = used(store, &policies.shared, "shared").await;
        let lost = LIMIT * failovers;
        assert!(admitted <= LIMIT + lost, "{admitted} admitted, {faults:?}");
        assert!(
            charged + lost >= admitted,
            "{admitted} admitted and {charged} charged, {faults:?}"
        );
        admitted
    }
}
