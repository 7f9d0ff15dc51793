//! Thousands of commands, each answer held against the model, field by field.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tollgate::{ManualClock, Micros};

use super::model::{Model, Numbers, Reply};
use super::throttle;
use crate::daemon::Daemon;
use crate::resp::Talk;

/// What is asked: how long after the last, in µs, and how much.
type Step = (u64, i128);

fn numbers() -> impl Strategy<Value = Numbers> {
    let max_burst = prop_oneof![0..4_i128, 0..1_000_i128, 0..100_000_i128];
    let period = prop_oneof![Just(1_i128), Just(60), Just(3_600), Just(86_400), 1..100_000_i128];
    // Units are whole microseconds apart, whole nanoseconds, or neither.
    let count = prop_oneof![1..10_i128, Just(10), Just(1_000), Just(1_024), 1..100_000_i128];
    (max_burst, count, period)
        .prop_map(|(max_burst, count, period)| Numbers { max_burst, count, period })
        .prop_filter("a tick of one microsecond is exact", |x| fits(*x))
}

/// Whether the daemon keeps every microsecond: twice the capacity, in the parts of which its rate is
/// a whole number, stays below 2^53. It rounds time where that does not hold.
fn fits(Numbers { max_burst, count, period }: Numbers) -> bool {
    let (mut common, mut rest) = (period * 1_000_000, count);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    let part = period * 1_000_000 / common;
    count <= period * 1_000_000 && 2 * (max_burst + 1) * part < 1 << 53
}

/// Pauses and quantities around those at which something happens.
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
    talk: &mut Talk,
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
        let words = format!("k{key} {max_burst} {count} {period} {quantity}");
        let reply = throttle(talk, &words).await.map_err(TestCaseError::fail)?;
        prop_assert_eq!(reply, exact.ask(now, *quantity), "{} at {} ns", words, now);
        let theirs = truncated.ask(now, *quantity);
        let lost = charged + quantity + max_burst + 1;
        let is_explained = reply == theirs
            || !numbers.are_whole() && explains(lost, numbers, reply, theirs)
            || !numbers.are_whole() && exact.distance(now, *quantity) <= lost;
        prop_assert!(is_explained, "{} at {} ns: {:?}, redis-cell {:?}", words, now, reply, theirs);
        if reply[0] == 0 {
            exact.charge(now, *quantity);
            truncated.charge(now, *quantity);
            charged += quantity;
        }
    }
    Ok(())
}

/// Whether so many nanoseconds make that difference between answers of the same verdict: a field of
/// seconds is rounded to the next one, and what remains is less by the units that take so long,
/// and by one that is no longer whole.
fn explains(lost: i128, numbers: Numbers, ours: Reply, theirs: Reply) -> bool {
    let seconds = 1 + lost / 1_000_000_000;
    let units = 1 + lost * numbers.count / (numbers.period * 1_000_000_000);
    let most = [0, 0, units, seconds, seconds];
    let apart = ours.iter().zip(&theirs).map(|(ours, theirs)| (ours - theirs).abs());
    apart.zip(most).all(|(apart, most)| apart <= most)
}

#[test]
fn every_answer_is_redis_cells() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let daemon = runtime.block_on(Daemon::start());
    let key = Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 400, ..Config::default() });
    let ran = runner.run(&numbers().prop_flat_map(steps), |(numbers, steps)| {
        key.set(key.get() + 1);
        runtime.block_on(async {
            let mut talk = Talk::with(&daemon).await;
            run(&mut talk, &daemon.clock, numbers, (key.get(), &steps)).await
        })
    });
    ran.unwrap();
}
