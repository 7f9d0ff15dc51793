//! Several processes with leases on one store, in simulated time, with faults.
#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "demand and its parts are fractions"
)]

use fastrand::Rng;
use tollgate_algorithms::{Check, Cost, Decision, Micros, Operation, Policy, Request, Timestamp};
use tollgate_state::{Key, ManualClock};

use super::key::Now;
use super::{FollowUp, LeaseCharge, Leases, Refund, leased_check};
use crate::MemoryLimiter;

const KEY: &[u8] = b"hot";
const PROCESSES: u32 = 10;
const MILLI: Micros = Micros::from_millis(1);

/// A process with clocks that differ from those of the store.
struct Process {
    leases: Leases,
    /// Its part of the demand.
    weight: f64,
    /// Its monotonic clock, and by how much that is fast in ppm.
    monotonic: Timestamp,
    drift: u64,
    /// How far its wall clock is ahead, in µs.
    wall_offset: i64,
    stopped_until: Timestamp,
    /// Whether its monotonic clock stands still while it is stopped.
    is_asleep: bool,
}

impl Process {
    fn new(weight: f64, seed: u64) -> Self {
        Process {
            leases: Leases { next_id: seed.into(), ..Leases::default() },
            weight,
            monotonic: Timestamp::from_micros(1_000_000),
            drift: 0,
            wall_offset: 0,
            stopped_until: Timestamp::EPOCH,
            is_asleep: false,
        }
    }

    fn advance(&mut self, time: Timestamp) {
        self.is_asleep &= time < self.stopped_until;
        if !self.is_asleep {
            let passed = Micros::new(1_000 - 1_000 * self.drift / 1_000_000);
            self.monotonic = self.monotonic.saturating_add(passed);
        }
    }

    fn now(&self, time: Timestamp) -> Now {
        let wall = i64::try_from(time.as_micros()).unwrap() + self.wall_offset;
        let wall = Timestamp::from_micros(u64::try_from(wall).unwrap());
        Now { monotonic: self.monotonic, wall }
    }
}

/// What is on its way between a process and the store.
enum Message {
    Charge(LeaseCharge),
    Answer(LeaseCharge, Option<Box<Decision>>),
    Refund(Refund),
}

struct World {
    clock: ManualClock,
    store: MemoryLimiter,
    policy: Policy,
    /// Has the declared limits, and is asked about every admission.
    declared: (MemoryLimiter, Policy),
    processes: Vec<Process>,
    messages: Vec<(Timestamp, usize, Message)>,
    rng: Rng,
    has_faults: bool,
    has_sleep: bool,
    has_moving_demand: bool,
    calls: u64,
    decided: u64,
    admitted: u64,
    over: u64,
}

impl World {
    fn new(limits: &str, declared: &str, hold: Option<Micros>, seed: u64) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        let limiter = || MemoryLimiter::builder().clock(clock.clone()).build();
        let policy = Policy::named("hot", limits).unwrap();
        let processes =
            (1..=PROCESSES).map(|rank| Process::new(f64::from(rank).powf(-1.1), u64::from(rank)));
        World {
            store: limiter(),
            declared: (limiter(), Policy::named("declared", declared).unwrap()),
            policy: policy.leased(hold).unwrap(),
            processes: processes.collect(),
            messages: Vec::new(),
            rng: Rng::with_seed(seed),
            has_faults: false,
            has_sleep: seed.is_multiple_of(2),
            has_moving_demand: false,
            calls: 0,
            decided: 0,
            admitted: 0,
            over: 0,
            clock,
        }
    }

    fn hold(&self) -> Micros {
        self.policy.hold().unwrap()
    }

    /// Runs for a time in ms, with a demand per second.
    fn run(&mut self, millis: u64, demand: f64) {
        for _ in 0..millis {
            self.clock.advance(MILLI);
            let now = self.clock.now();
            self.processes.iter_mut().for_each(|process| process.advance(now));
            self.deliver(now);
            if self.has_faults {
                self.inject_fault(now);
            }
            let total: f64 = self.processes.iter().map(|process| process.weight).sum();
            for index in 0..self.processes.len() {
                let process = &self.processes[index];
                let expected = demand * process.weight / total / 1_000.0;
                let requests = expected + self.rng.f64();
                if process.stopped_until <= now {
                    (0..requests as u64).for_each(|_| self.request(index, now));
                }
            }
        }
    }

    fn request(&mut self, index: usize, now: Timestamp) {
        let cost = Cost::from(if self.has_faults { self.rng.u32(1..=3) } else { 1 });
        let checks = [Check::new(&self.policy, KEY).with_cost(cost)];
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: &checks, request_id: None };
        let (check, hold) = leased_check(&request).unwrap();
        let process = &self.processes[index];
        let (leases, at, mut follow_up) = (&process.leases, process.now(now), FollowUp::default());
        let decision = leases.decide_now(check, at, &mut follow_up);
        let decision = decision.or_else(|| leases.decide(check, hold, at, &mut follow_up));
        let decision = decision.unwrap_or_else(|| {
            self.calls += 1;
            self.store.check_cost(&self.policy, Key::new(KEY).unwrap(), cost)
        });
        self.decided += 1;
        if decision.allowed {
            self.admitted += 1;
            let (declared, policy) = &self.declared;
            let key = Key::new(KEY).unwrap();
            self.over += u64::from(!declared.check_cost(policy, key, cost).allowed);
        }
        let messages = follow_up.charge.map(Message::Charge).into_iter();
        for message in messages.chain(follow_up.refund.map(Message::Refund)) {
            self.send(index, now, message);
        }
    }

    fn send(&mut self, index: usize, now: Timestamp, message: Message) {
        let delay = Micros::new(self.rng.u64(200..=3_000));
        self.messages.push((now.saturating_add(delay), index, message));
    }

    fn deliver(&mut self, now: Timestamp) {
        let messages = std::mem::take(&mut self.messages);
        let (due, later) = messages.into_iter().partition(|(at, _, _)| *at <= now);
        self.messages = later;
        let due: Vec<_> = due;
        for (_, index, message) in due {
            match message {
                Message::Charge(request) => {
                    self.calls += 1;
                    let Check { policy, key, cost } = request.check();
                    let granted = self.store.take(policy, Key::new(key).unwrap(), cost).unwrap();
                    // The reply may be lost.
                    let is_lost = self.has_faults && self.rng.u8(..) < 20;
                    let granted = Some(Box::new(granted)).filter(|_| !is_lost);
                    self.send(index, now, Message::Answer(request, granted));
                }
                Message::Answer(request, granted) => {
                    let process = &self.processes[index];
                    process.leases.answer(
                        &request,
                        granted.map(|granted| *granted),
                        process.now(now),
                    );
                }
                Message::Refund(unspent) => {
                    self.calls += 1;
                    for part in unspent.unspent {
                        let key = Key::new(&unspent.subject.key).unwrap();
                        let time = Some(part.charged);
                        let _ = self.store.refund(&unspent.subject.policy, key, part.cost, time);
                    }
                }
            }
        }
    }

    /// Kills, stops or suspends a process, or sets its clock, some times a second.
    fn inject_fault(&mut self, now: Timestamp) {
        if self.rng.u8(..) > 2 {
            return;
        }
        let index = self.rng.usize(..self.processes.len());
        let pause = 2 * self.hold().get();
        let process = &mut self.processes[index];
        match self.rng.u8(..6) {
            0 => {
                *process = Process::new(process.weight, self.rng.u64(..));
                self.messages.retain(|(_, of, _)| *of != index);
            }
            1 | 2 => {
                process.stopped_until = now.saturating_add(Micros::new(pause));
                process.is_asleep = self.has_sleep;
            }
            3 => process.wall_offset += 3_600_000_000,
            // Together with sleep, both clocks would be wrong.
            4 if !self.has_sleep => process.wall_offset -= 3_600_000_000,
            // Slow, by the whole margin.
            _ => process.drift = 1_000,
        }
    }

    /// Runs for a time in ms after the burst is used up; returns the admitted part of a rate per second,
    /// and the calls to the store per decision.
    fn measure(&mut self, millis: u64, demand: f64, rate: f64) -> (f64, f64) {
        self.run(4_000, demand);
        let before = (self.admitted, self.decided, self.calls);
        let mut elapsed = 0;
        while elapsed < millis {
            self.run(5_000, demand);
            elapsed += 5_000;
            if self.has_moving_demand {
                let weights: Vec<f64> = self.processes.iter().map(|p| p.weight).collect();
                let by = self.rng.usize(1..weights.len());
                for (index, process) in self.processes.iter_mut().enumerate() {
                    process.weight = weights[(index + by) % weights.len()];
                }
            }
        }
        let admitted = (self.admitted - before.0) as f64;
        let used = admitted / (rate * elapsed as f64 / 1_000.0);
        (used, (self.calls - before.2) as f64 / (self.decided - before.1) as f64)
    }
}

/// Limits, limits that their admissions must satisfy, and the rate per second.
const LIMITS: [(&str, &str, f64); 9] = [
    ("1000/s", "1000/s", 1_000.0),
    ("20000/s", "20000/s", 20_000.0),
    ("1000/s fixed", "1000/s fixed", 1_000.0),
    ("20000/s fixed", "20000/s fixed", 20_000.0),
    // A weighted window admits its count at once, and then at that rate.
    ("20000/s sliding", "20000/s", 20_000.0),
    // The windows of the store begin when it is first charged, so a second may touch two of them.
    ("1000/s fixed from-first", "2000/s log", 1_000.0),
    ("1000/s log", "1000/s log", 1_000.0),
    ("20000/s sliding by 10ms strict", "20000/s sliding by 10ms strict", 20_000.0),
    ("1500/s; 60000/min fixed", "1500/s; 60000/min fixed", 1_500.0),
];

#[test]
fn a_limit_is_used_and_never_exceeded() {
    for (limits, declared, rate) in LIMITS {
        for is_moving in [false, true] {
            for factor in [0.95, 1.5, 10.0] {
                let mut world = World::new(limits, declared, None, 1);
                world.has_moving_demand = is_moving;
                let (used, calls) = world.measure(20_000, rate * factor, rate);
                let case = format!("{limits}, demand {factor}, moving {is_moving}: {used:.3} used");
                println!("{case}, {calls:.4} calls per decision");
                assert_eq!(world.over, 0, "{case}");
                assert!(used > 0.93, "{case}");
                let tokens = rate * factor * world.hold().get() as f64 / 1e6 / 10.0;
                assert!(tokens < 100.0 || calls < 0.0125, "{case}, {calls} calls, {tokens} tokens");
            }
        }
    }
}

/// `TOLLGATE_SEEDS` is the number of seeds, `SEED` a single one.
#[test]
fn no_fault_lets_a_limit_be_exceeded() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TOLLGATE_SEEDS").unwrap_or(32),
    };
    for seed in seeds {
        let (limits, declared, rate) = LIMITS[usize::try_from(seed / 4).unwrap() % LIMITS.len()];
        let hold = Some(Micros::from_millis(250)).filter(|_| seed % 4 < 2);
        let mut world = World::new(limits, declared, hold, seed);
        world.has_faults = true;
        let hold = world.hold().get() / 1_000;
        for _ in 0..8 {
            world.run(100, 20.0 * rate);
            world.run(hold * 15 / 4, 0.0);
            // Now the bucket is full, the processes expect the demand of before, and take much of it.
            world.run(5, 0.5 * rate);
            // It is refilled, and then everything is wanted at once.
            world.run(hold * 9 / 10, 0.0);
            world.run(100, 20.0 * rate);
            let (pause, factor) = (world.rng.u64(..1_000), world.rng.f64());
            world.run(pause, factor * rate);
        }
        assert_eq!(world.over, 0, "seed {seed}: {limits}");
        // It recovers.
        world.has_faults = false;
        let (used, _) = world.measure(10_000, 1.5 * rate, rate);
        assert!(used > 0.68, "seed {seed}: {limits}: {used}");
        assert_eq!(world.over, 0, "seed {seed}: {limits}");
    }
}
