//! Thousands of random commands, with each reply compared with the model.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tollgate::{ManualClock, Micros};

use super::model::{Model, Numbers, Reply};
use super::throttle;
use crate::resp::RespClient;
use crate::support::daemon::Daemon;

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

/// Whether rounding of so many nanoseconds explains the difference between two replies with the same
/// verdict: seconds round to the next one, and the remaining units differ by those that take so long
/// and by one that is no longer whole.
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
