//! `CL.THROTTLE`, compared with a model of redis-cell, also by thousands of random commands.
//!
//! Four differences are intended: fractions of a millisecond are rounded up too, a quantity of 0
//! changes nothing, senseless numbers are errors, and a key keeps its usage when the numbers
//! change. The model includes the first two; rows in `throttle.rs` show all four.
//!
//! The model counts in 128 bits, as the documentation of redis-cell describes. Times are in
//! fractions of a nanosecond, `count` of them in each, so that the time between two units is a
//! whole number. redis-cell itself uses whole nanoseconds, as [`Model::truncated`] does.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tollgate::{ManualClock, Micros};

use super::RespClient;
use crate::support::daemon::Daemon;

const SECOND: i128 = 1_000_000_000;

/// The arguments of a command, in the range in which redis-cell does not overflow.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    max_burst: i128,
    count: i128,
    /// In seconds.
    period: i128,
}

impl Numbers {
    /// Whether the time between two units is a whole number of nanoseconds.
    fn are_exact(self) -> bool {
        (self.period * SECOND) % self.count == 0
    }
}

/// The five integers of a reply.
type Reply = [i128; 5];

/// The state of one key.
#[derive(Clone, Copy, Debug)]
struct Model {
    numbers: Numbers,
    /// The time between two units.
    emission: i128,
    /// When the key is back in its initial state.
    recovered: i128,
}

impl Model {
    /// A model without rounding.
    fn exact(numbers: Numbers) -> Self {
        Model { numbers, emission: numbers.period * SECOND, recovered: 0 }
    }

    /// A model that rounds as redis-cell does.
    fn truncated(numbers: Numbers) -> Self {
        let emission = numbers.period * SECOND / numbers.count * numbers.count;
        Model { emission, ..Model::exact(numbers) }
    }

    /// The reply at a time in nanoseconds, without charging.
    fn peek(&self, now: i128, quantity: i128) -> Reply {
        let now = now * self.numbers.count;
        let limit = self.numbers.max_burst + 1;
        let tolerance = self.emission * limit;
        let before = self.recovered.max(now) - now;
        let after = before + self.emission * quantity;
        // A quantity of 0 is never denied, even if nothing remains.
        let is_limited = quantity > 0 && after > tolerance;
        let used = if is_limited { before } else { after };
        let retry =
            if is_limited && quantity <= limit { self.seconds(after - tolerance) } else { -1 };
        let remaining = ((tolerance - used) / self.emission).max(0);
        [i128::from(is_limited), limit, remaining, retry, self.seconds(used)]
    }

    /// The distance from the boundary between allowed and limited, in whole nanoseconds.
    fn distance(&self, now: i128, quantity: i128) -> i128 {
        let now = now * self.numbers.count;
        let tolerance = self.emission * (self.numbers.max_burst + 1);
        let after = self.recovered.max(now) - now + self.emission * quantity;
        (after - tolerance).abs() / self.numbers.count
    }

    /// Charges an admitted quantity.
    fn charge(&mut self, now: i128, quantity: i128) {
        let from = self.recovered.max(now * self.numbers.count);
        self.recovered = from + self.emission * quantity;
    }

    /// Whole seconds, rounded up. redis-cell drops fractions of a millisecond; the daemon does not.
    fn seconds(&self, parts: i128) -> i128 {
        let second = SECOND * self.numbers.count;
        (parts + second - 1) / second
    }
}

/// Sends `CL.THROTTLE` with these arguments.
async fn throttle(client: &mut RespClient, arguments: &str) -> Result<Reply, String> {
    let reply = client.call(&format!("CL.THROTTLE {arguments}")).await;
    let integers = reply.strip_prefix("*5 :").ok_or_else(|| format!("{arguments}: {reply}"))?;
    let integers: Vec<i128> = integers.split(" :").map(|part| part.parse().unwrap()).collect();
    Ok(integers.try_into().unwrap())
}

#[tokio::test]
async fn high_rates_are_enforced_for_single_requests() {
    const PAUSE: u64 = 83;
    const COMMANDS: u64 = 18_000;
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let mut admitted = 0;
    // For a second and a half, twice the admitted rate, evenly.
    for _ in 0..COMMANDS {
        daemon.clock.advance(Micros::new(PAUSE));
        admitted += 1 - throttle(&mut client, "k 9 6000 1").await.unwrap()[0];
    }
    // redis-cell drops state that lives for less than a millisecond, and admits far more.
    let elapsed = (COMMANDS - 1) * PAUSE;
    assert_eq!(admitted, 10 + i128::from(elapsed * 6_000 / 1_000_000));
}

/// The time since the previous command, in µs, and the quantity.
type Step = (u64, i128);

fn numbers() -> impl Strategy<Value = Numbers> {
    let max_burst = prop_oneof![0..4_i128, 0..1_000_i128, 0..100_000_i128];
    let period = prop_oneof![Just(1_i128), Just(60), Just(3_600), Just(86_400), 1..100_000_i128];
    // The time between units is in whole microseconds, in whole nanoseconds, or neither.
    let count = prop_oneof![1..10_i128, Just(10), Just(1_000), Just(1_024), 1..100_000_i128];
    (max_burst, count, period)
        .prop_map(|(max_burst, count, period)| Numbers { max_burst, count, period })
        .prop_filter("a tick of one microsecond is exact", |numbers| is_exact(*numbers))
}

/// Whether the daemon counts exactly in microseconds: twice the capacity, in the units in which its
/// rate is a whole number, is below 2^53. Otherwise it rounds times.
fn is_exact(Numbers { max_burst, count, period }: Numbers) -> bool {
    let (mut common, mut rest) = (period * 1_000_000, count);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    let part = period * 1_000_000 / common;
    count <= period * 1_000_000 && 2 * (max_burst + 1) * part < 1 << 53
}

/// Pauses and quantities close to the boundaries.
fn steps(numbers: Numbers) -> impl Strategy<Value = (Numbers, Vec<Step>)> {
    let limit = numbers.max_burst + 1;
    let unit = u64::try_from(numbers.period * 1_000_000 / numbers.count).unwrap();
    let all = unit.saturating_mul(u64::try_from(limit).unwrap());
    let pause = prop_oneof![
        3 => Just(0),
        1 => Just(1),
        2 => 0..=unit,
        2 => unit..=unit + 1,
        2 => 0..=all,
        1 => all..=all + all / 2 + 1,
    ];
    let quantity = prop_oneof![
        1 => Just(0),
        4 => Just(1),
        3 => 1..=limit,
        1 => Just(limit),
        1 => limit + 1..=limit + 3,
    ];
    (Just(numbers), vec((pause, quantity), 1..40))
}

async fn run(
    client: &mut RespClient,
    clock: &ManualClock,
    numbers: Numbers,
    (key, steps): (u32, &[Step]),
) -> Result<(), TestCaseError> {
    let Numbers { max_burst, count, period } = numbers;
    let (mut exact, mut truncated) = (Model::exact(numbers), Model::truncated(numbers));
    let mut charged = 0;
    for (pause, quantity) in steps {
        clock.advance(Micros::new(*pause));
        let now = i128::from(clock.now().as_micros()) * 1_000;
        let arguments = format!("k{key} {max_burst} {count} {period} {quantity}");
        let reply = throttle(client, &arguments).await.map_err(TestCaseError::fail)?;
        prop_assert_eq!(reply, exact.peek(now, *quantity), "{} at {} ns", arguments, now);
        let theirs = truncated.peek(now, *quantity);
        let lost = charged + quantity + max_burst + 1;
        let is_explained = reply == theirs
            || !numbers.are_exact() && explains(lost, numbers, reply, theirs)
            || !numbers.are_exact() && exact.distance(now, *quantity) <= lost;
        prop_assert!(
            is_explained,
            "{} at {} ns: {:?}, redis-cell {:?}",
            arguments,
            now,
            reply,
            theirs
        );
        if reply[0] == 0 {
            exact.charge(now, *quantity);
            truncated.charge(now, *quantity);
            charged += quantity;
        }
    }
    Ok(())
}

/// Whether rounding of so many nanoseconds explains the difference between two replies with the
/// same verdict: seconds round to the next one, and the remaining units differ by those that take
/// so long and by one that is no longer whole.
fn explains(lost: i128, numbers: Numbers, ours: Reply, theirs: Reply) -> bool {
    let seconds = 1 + lost / 1_000_000_000;
    let units = 1 + lost * numbers.count / (numbers.period * 1_000_000_000);
    let max = [0, 0, units, seconds, seconds];
    let differences = ours.iter().zip(&theirs).map(|(ours, theirs)| (ours - theirs).abs());
    differences.zip(max).all(|(difference, max)| difference <= max)
}

#[test]
fn replies_match_the_redis_cell_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let daemon = runtime.block_on(Daemon::start());
    let key = Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 400, ..Config::default() });
    let result = runner.run(&numbers().prop_flat_map(steps), |(numbers, steps)| {
        key.set(key.get() + 1);
        runtime.block_on(async {
            let mut client = RespClient::connect(&daemon).await;
            run(&mut client, &daemon.clock, numbers, (key.get(), &steps)).await
        })
    });
    result.unwrap();
}
