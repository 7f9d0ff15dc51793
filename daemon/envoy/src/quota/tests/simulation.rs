//! Clients that behave as Envoy 1.40.0 does, several daemons on one store, and a reference limiter
//! that must admit whatever the clients admit.

use std::sync::Arc;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::BucketAction;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::Strategy;
use envoy_types::pb::google::protobuf::Duration;
use hyper::header::HeaderMap;
use tollgate::{ManualClock, MemoryLimiter, Micros, Timestamp};
use tollgate_config::Config;
use tollgate_engine::{ActiveConfig, Engine, PeerAddress, Remote};
use tollgate_state::Clock;

use crate::EnvoyState;
use crate::connection::Service;
use crate::quota::session::Session;

const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);
/// The length of a step.
const STEP: Micros = Micros::from_millis(20);
const SECOND: u64 = 1_000_000;

/// A token bucket with millionths of tokens.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    max: u64,
    /// Millionths of tokens per second.
    rate: u64,
    level: u64,
    at: Timestamp,
}

impl TokenBucket {
    fn advance(&mut self, now: Timestamp) {
        let span = now.duration_since(self.at).get();
        let refill = u128::from(self.rate) * u128::from(span) / u128::from(SECOND);
        let level = u128::from(self.level) + refill;
        self.level = u64::try_from(level).unwrap().min(self.max * SECOND);
        self.at = now;
    }

    /// Admits at most `requests`.
    fn admit(&mut self, requests: u64, now: Timestamp) -> u64 {
        self.advance(now);
        let admitted = requests.min(self.level / SECOND);
        self.level -= admitted * SECOND;
        admitted
    }
}

/// What a client has for its bucket.
#[derive(Clone, Copy, Debug)]
enum Assignment {
    DenyAll,
    TokenBucket(TokenBucket),
}

/// An Envoy with one bucket.
struct Client {
    session: Session,
    assignment: Option<(Assignment, Timestamp)>,
    /// Whether it knows the bucket.
    is_known: bool,
    next_report: Timestamp,
    reported: Timestamp,
    requests: u64,
    /// Thousandths of requests per second, and the fraction of one that waits, in billionths.
    load: u64,
    fraction: u64,
    /// Messages on their way, with the time of their arrival.
    reports: Vec<(Timestamp, RateLimitQuotaUsageReports)>,
    /// Its daemon does nothing until then.
    paused: Timestamp,
    responses: Vec<(Timestamp, RateLimitQuotaResponse)>,
}

struct Simulation {
    random: fastrand::Rng,
    clock: ManualClock,
    daemons: Vec<Arc<Engine>>,
    state: Arc<EnvoyState>,
    remote: Arc<Remote>,
    clients: Vec<Client>,
    reference: TokenBucket,
    max_delay: Micros,
    admitted: u64,
}

impl Simulation {
    fn new(seed: u64, (rate, burst): (u64, u64), daemons: usize, max_delay: Micros) -> Self {
        let clock = ManualClock::at(START);
        let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
        let yaml = format!("policies: {{ shop: {{ limits: ['{rate}/s burst {burst}'] }} }}");
        let config = Config::from_yaml(&yaml).unwrap();
        let engine = || {
            let active = ActiveConfig::new(&config).unwrap();
            Arc::new(Engine::new(active, limiter.clone().into()))
        };
        let (max, rate) = (burst, rate * SECOND);
        Simulation {
            random: fastrand::Rng::with_seed(seed),
            daemons: (0..daemons).map(|_| engine()).collect(),
            clock,
            state: Arc::default(),
            remote: Arc::new(Remote::new(PeerAddress::Unix)),
            clients: Vec::new(),
            reference: TokenBucket { max, rate, level: max * SECOND, at: START },
            max_delay,
            admitted: 0,
        }
    }

    fn session(&mut self) -> Session {
        let engine = Arc::clone(&self.daemons[self.random.usize(0..self.daemons.len())]);
        let (state, remote) = (Arc::clone(&self.state), Arc::clone(&self.remote));
        let service = Service { engine, state, remote };
        Session::new(service, HeaderMap::new(), Clock::from(self.clock.clone()), START)
    }

    fn add_client(&mut self, load: u64) {
        let now = self.clock.now();
        let client = Client {
            session: self.session(),
            assignment: None,
            is_known: false,
            next_report: now.saturating_add(Micros::from_millis(self.random.u64(0..5_000))),
            reported: now,
            requests: 0,
            load,
            fraction: 0,
            reports: Vec::new(),
            paused: now,
            responses: Vec::new(),
        };
        self.clients.push(client);
    }

    /// A new stream, perhaps to another daemon, perhaps of a new process.
    fn reconnect(&mut self, index: usize, is_restarted: bool) {
        let session = self.session();
        let client = &mut self.clients[index];
        client.session = session;
        (client.reports, client.responses) = (Vec::new(), Vec::new());
        if is_restarted {
            (client.assignment, client.is_known, client.requests) = (None, false, 0);
        }
    }

    fn arrival<T>(&mut self, after: &[(Timestamp, T)]) -> Timestamp {
        let delay = Micros::new(self.random.u64(0..=self.max_delay.get()));
        let arrival = self.clock.now().saturating_add(delay);
        after.last().map_or(arrival, |(last, _)| arrival.max(*last))
    }

    async fn run(&mut self, span: Micros) {
        let end = self.clock.now().saturating_add(span);
        while self.clock.now() < end {
            self.clock.advance(STEP);
            let mut clients = std::mem::take(&mut self.clients);
            for client in &mut clients {
                self.step(client).await;
            }
            self.clients = clients;
        }
    }

    async fn step(&mut self, client: &mut Client) {
        let now = self.clock.now();
        client.fraction += client.load * STEP.get();
        let requests = client.fraction / (1_000 * SECOND);
        client.fraction %= 1_000 * SECOND;
        if requests > 0 {
            let admitted = client.admit(requests, now);
            self.reference.advance(now);
            let level = self.reference.level.checked_sub(admitted * SECOND);
            self.reference.level = level.expect("the clients admit more than the limit");
            self.admitted += admitted;
            client.requests += requests;
        }
        if requests > 0 && !client.is_known {
            client.is_known = true;
            client.reported = now;
            let arrival = self.arrival(&client.reports);
            client.reports.push((arrival, report(1, 0)));
            client.requests -= 1;
        }
        if now >= client.next_report {
            client.next_report = now.saturating_add(Micros::from_secs(5));
            if client.is_known {
                let elapsed = now.duration_since(client.reported).get() / SECOND;
                client.reported = now;
                let arrival = self.arrival(&client.reports);
                let requests = std::mem::take(&mut client.requests);
                client.reports.push((arrival, report(requests, elapsed)));
            }
        }
        while now >= client.paused && client.reports.first().is_some_and(|(at, _)| *at <= now) {
            client.session.receive(client.reports.remove(0).1);
        }
        if now >= client.paused
            && client.session.next_due() == Some(Micros::ZERO)
            && let Some(response) = client.session.respond().await.unwrap()
        {
            let arrival = self.arrival(&client.responses);
            client.responses.push((arrival, response));
        }
        while client.responses.first().is_some_and(|(at, _)| *at <= now) {
            let (_, response) = client.responses.remove(0);
            for action in response.bucket_action {
                client.apply(action.bucket_action.unwrap(), now);
            }
        }
    }
}

impl Client {
    /// Admits requests by its assignment; without one it denies them.
    fn admit(&mut self, requests: u64, now: Timestamp) -> u64 {
        match &mut self.assignment {
            Some((Assignment::TokenBucket(bucket), expiry)) if now < *expiry => {
                bucket.admit(requests, now)
            }
            _ => 0,
        }
    }

    fn apply(&mut self, action: BucketAction, now: Timestamp) {
        let BucketAction::QuotaAssignmentAction(assignment) = action else {
            (self.assignment, self.is_known) = (None, false);
            return;
        };
        let ttl = u64::try_from(assignment.assignment_time_to_live.unwrap().seconds).unwrap();
        let expiry = now.saturating_add(Micros::from_secs(ttl));
        let current = self.assignment.filter(|(_, expiry)| now < *expiry);
        let new = match assignment.rate_limit_strategy.unwrap().strategy.unwrap() {
            Strategy::TokenBucket(new) => {
                let max = u64::from(new.max_tokens);
                let fill = u64::try_from(new.fill_interval.unwrap().seconds).unwrap();
                let rate = u64::from(new.tokens_per_fill.unwrap().value) * SECOND / fill;
                let level = match current {
                    Some((Assignment::TokenBucket(mut old), _)) => {
                        old.advance(now);
                        // Tokens are kept exactly if nothing changes, else the fraction of them.
                        match (old.max, old.rate) == (max, rate) {
                            true => old.level,
                            false => old.level * max / old.max / SECOND * SECOND,
                        }
                    }
                    _ => max * SECOND,
                };
                Assignment::TokenBucket(TokenBucket { max, rate, level, at: now })
            }
            _ => Assignment::DenyAll,
        };
        self.assignment = Some((new, expiry));
    }
}

/// A report about the only bucket.
fn report(requests: u64, elapsed: u64) -> RateLimitQuotaUsageReports {
    let bucket = [("user".to_owned(), "ann".to_owned())].into();
    let usage = BucketQuotaUsage {
        bucket_id: Some(BucketId { bucket }),
        time_elapsed: Some(Duration { seconds: i64::try_from(elapsed).unwrap(), nanos: 0 }),
        num_requests_allowed: requests,
        num_requests_denied: 0,
    };
    RateLimitQuotaUsageReports { domain: "shop".to_owned(), bucket_quota_usages: vec![usage] }
}

/// The limits of the tests: requests a second, and the burst.
const LIMITS: [(u64, u64); 6] =
    [(1_000, 1_000), (100, 40), (50, 10), (7, 20), (20_000, 2_000), (20, 400)];
/// Those whose burst suffices for eight clients.
const LARGE_LIMITS: [(u64, u64); 3] = [LIMITS[0], LIMITS[1], LIMITS[4]];

#[tokio::test]
async fn clients_never_admit_more_than_the_limit() {
    let seeds = std::env::var("TOLLGATE_SEEDS").map_or(20, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let limit = LIMITS[random.usize(0..LIMITS.len())];
        let max_delay = Micros::from_millis(random.u64(0..=2_000));
        let daemons = random.usize(1..=3);
        println!("seed {seed}: {limit:?}, {daemons} daemons, delays up to {max_delay:?}");
        let mut simulation = Simulation::new(seed, limit, daemons, max_delay);
        let most = limit.0 * [2_000, 50_000][random.usize(0..2)];
        for _ in 0..random.usize(1..=6) {
            simulation.add_client(random.u64(0..=most));
        }
        // The longest time between two events.
        let calm = [1_000, 5_000, 20_000][random.usize(0..3)];
        for _ in 0..30 {
            simulation.run(Micros::from_millis(random.u64(500..=calm))).await;
            let index = random.usize(0..simulation.clients.len());
            match random.usize(0..6) {
                0 => simulation.reconnect(index, false),
                1 => simulation.reconnect(index, true),
                2 | 3 => {
                    // Often until the assignment has expired at the client, but not its leases.
                    let span = Micros::from_millis(random.u64(5_000..=13_000));
                    let end = simulation.clock.now().saturating_add(span);
                    simulation.clients[index].paused = end;
                }
                _ => simulation.clients[index].load = random.u64(0..=most),
            }
        }
    }
}

/// The daemon is paused again and again, each time until the assignment has expired and its leases
/// have not: the client would begin each time with all its tokens.
#[tokio::test]
async fn tokens_of_expired_assignments_are_charged_again() {
    for limit in LIMITS {
        let mut simulation = Simulation::new(1, limit, 1, Micros::from_millis(5));
        simulation.add_client(limit.0 * 100_000);
        for _ in 0..40 {
            simulation.run(Micros::from_millis(500)).await;
            let client = &mut simulation.clients[0];
            if let Some((Assignment::TokenBucket(_), expiry)) = client.assignment {
                client.paused = expiry.saturating_add(STEP);
                let span = client.paused.duration_since(simulation.clock.now());
                simulation.run(span).await;
            }
        }
    }
}

/// The percentage of the limit that is used with these loads, in percent of it, from the sixth
/// report on.
async fn utilization(limit: (u64, u64), loads: &[u64]) -> u64 {
    let mut simulation = Simulation::new(1, limit, 2, Micros::from_millis(5));
    for load in loads {
        simulation.add_client(limit.0 * load * 10);
    }
    simulation.run(Micros::from_secs(30)).await;
    let before = simulation.admitted;
    simulation.run(Micros::from_secs(60)).await;
    (simulation.admitted - before) * 100 / (limit.0 * 60)
}

#[tokio::test]
async fn a_steady_load_uses_the_whole_limit() {
    for limit in LARGE_LIMITS {
        for loads in [&[300][..], &[150, 30, 5], &[60, 60, 60], &[20, 20, 20, 20, 20, 20, 20, 20]] {
            let utilization = utilization(limit, loads).await;
            println!("{limit:?} {loads:?}: {utilization} %");
            assert!(utilization >= 96, "{limit:?} {loads:?}: {utilization} %");
        }
    }
}

#[tokio::test]
async fn a_load_below_the_limit_is_admitted_whole() {
    for limit in LARGE_LIMITS {
        for loads in [&[80][..], &[50, 25, 5], &[10; 8]] {
            let load = loads.iter().sum::<u64>();
            let utilization = utilization(limit, loads).await;
            println!("{limit:?} {loads:?}: {utilization} of {load} %");
            assert!(utilization + 1 >= load, "{limit:?} {loads:?}: {utilization} of {load} %");
        }
    }
}

#[tokio::test]
async fn shares_follow_the_load() {
    let mut simulation = Simulation::new(1, (1_000, 1_000), 2, Micros::from_millis(5));
    for load in [2_000_000, 10_000] {
        simulation.add_client(load);
    }
    simulation.run(Micros::from_secs(40)).await;
    (simulation.clients[0].load, simulation.clients[1].load) = (10_000, 2_000_000);
    // A report, the expiry of the first client's leases, and two assignments.
    simulation.run(Micros::from_secs(30)).await;
    let before = simulation.admitted;
    simulation.run(Micros::from_secs(20)).await;
    let admitted = simulation.admitted - before;
    assert!(admitted >= 19_000, "{admitted} of 20,000");
}

#[tokio::test]
async fn a_silent_client_is_counted_once_and_gets_nothing_more() {
    let mut simulation = Simulation::new(1, (1_000, 1_000), 1, Micros::from_millis(5));
    simulation.add_client(100_000);
    for silences in 1..=2 {
        simulation.run(Micros::from_secs(12)).await;
        assert_eq!(simulation.state.quota.silent.get(), silences - 1);
        let last_report = simulation.clients[0].reported;
        simulation.clients[0].next_report = Timestamp::MAX;
        simulation.run(Micros::from_secs(40)).await;
        assert_eq!(simulation.state.quota.silent.get(), silences);
        let (_, expiry) = simulation.clients[0].assignment.unwrap();
        let span = expiry.duration_since(last_report);
        // 15 s without a report, and the life of the last assignment.
        assert!(span <= Micros::from_millis(25_100), "{span:?}");
        simulation.clients[0].next_report = simulation.clock.now();
    }
}

#[tokio::test]
async fn an_idle_bucket_is_abandoned() {
    let mut simulation = Simulation::new(1, (1_000, 1_000), 1, Micros::from_millis(5));
    simulation.add_client(100_000);
    simulation.run(Micros::from_secs(12)).await;
    simulation.clients[0].load = 0;
    simulation.run(Micros::from_secs(55)).await;
    assert!(simulation.clients[0].is_known);
    simulation.run(Micros::from_secs(15)).await;
    assert!(!simulation.clients[0].is_known);
    simulation.clients[0].load = 100_000;
    let before = simulation.admitted;
    simulation.run(Micros::from_secs(5)).await;
    assert!(simulation.admitted - before > 400);
}
