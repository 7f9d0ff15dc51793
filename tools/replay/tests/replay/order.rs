//! The order of events, compared with a sort of all events.

use proptest::prelude::*;
use tollgate::{Micros, Timestamp};
use tollgate_replay::log::Stamp;
use tollgate_replay::order::Order;

type Event = (Timestamp, usize);

/// All events in the order of release, in batches of `batch` pushes, and the number of late ones.
fn released(stamps: &[Stamp], reorder: Micros, spread: bool, batch: usize) -> (Vec<Event>, u64) {
    let mut order = Order::new(reorder, spread);
    let mut events = Vec::new();
    for (at, stamp) in stamps.iter().enumerate() {
        order.push(*stamp, at);
        if at % batch == 0 {
            order.release(&mut events);
        }
    }
    order.finish();
    order.release(&mut events);
    (events, order.late())
}

/// The documented behaviour: late events move to the open second, those of whole seconds are
/// spread, and all are sorted.
fn model(stamps: &[Stamp], reorder: Micros, spread: bool) -> (Vec<Event>, u64) {
    let second = |at: Timestamp| at.as_micros() / 1_000_000;
    let mut newest = Timestamp::EPOCH;
    let mut late = 0;
    let mut taken = Vec::new();
    for (at, stamp) in stamps.iter().enumerate() {
        newest = newest.max(stamp.at);
        let open = second(newest.saturating_sub(reorder));
        if second(stamp.at) < open {
            late += 1;
            let at_open = Timestamp::from_micros(open * 1_000_000);
            taken.push((Stamp { at: at_open, whole_second: false }, at));
        } else {
            taken.push((*stamp, at));
        }
    }
    let mut events: Vec<Event> = taken
        .iter()
        .map(|(stamp, at)| {
            let is_spread =
                |s: &Stamp| s.whole_second && spread && second(s.at) == second(stamp.at);
            if !is_spread(stamp) {
                return (stamp.at, *at);
            }
            let of_second = taken.iter().filter(|(x, _)| is_spread(x));
            let n = u64::try_from(of_second.clone().count()).unwrap();
            let i = u64::try_from(of_second.take_while(|(_, x)| x < at).count()).unwrap();
            (Timestamp::from_micros(second(stamp.at) * 1_000_000 + i * 1_000_000 / n), *at)
        })
        .collect();
    events.sort_by_key(|(at, _)| *at);
    (events, late)
}

fn stamps() -> impl Strategy<Value = Vec<Stamp>> {
    let jump = prop_oneof![8 => 0_u64..3_000_000, 1 => 0_u64..200_000_000];
    let back = prop_oneof![4 => Just(0_u64), 2 => 0_u64..3_000_000, 1 => 0_u64..100_000_000];
    prop::collection::vec((jump, back, any::<bool>()), 0..60).prop_map(|steps| {
        let mut now = 1_763_650_000_000_000;
        let stamp = |(jump, back, whole_second): (u64, u64, bool)| {
            now += jump;
            let at = now - back;
            let at = if whole_second { at / 1_000_000 * 1_000_000 } else { at };
            Stamp { at: Timestamp::from_micros(at), whole_second }
        };
        steps.into_iter().map(stamp).collect()
    })
}

proptest! {
    #[test]
    fn events_are_sorted(
        stamps in stamps(),
        reorder in prop_oneof![Just(0_u64), 0_u64..5_000_000, Just(60_000_000)],
        spread: bool,
        batch in 1_usize..20,
    ) {
        let reorder = Micros::new(reorder);
        let expected = model(&stamps, reorder, spread);
        prop_assert!(expected.0.is_sorted_by_key(|(at, _)| *at));
        prop_assert_eq!(released(&stamps, reorder, spread, batch), expected);
    }
}

fn exact(micros: u64) -> Stamp {
    Stamp { at: Timestamp::from_micros(micros), whole_second: false }
}

#[test]
fn a_gap_of_years_takes_one_step() {
    let stamps = [exact(1), exact(Timestamp::MAX.as_micros()), exact(2)];
    let (events, late) = released(&stamps, Micros::from_secs(60), true, 1);
    let order: Vec<usize> = events.iter().map(|(_, at)| *at).collect();
    assert_eq!((order, late), (vec![0, 2, 1], 1));
}

#[test]
fn a_finished_second_does_not_open_again() {
    let mut order = Order::new(Micros::from_secs(60), false);
    let mut events = Vec::new();
    order.push(exact(100_500_000), 'a');
    order.finish();
    order.release(&mut events);
    order.push(exact(100_600_000), 'b');
    order.finish();
    order.release(&mut events);
    assert_eq!(order.late(), 1);
    assert!(events.is_sorted_by_key(|(at, _)| *at));
    assert_eq!(events.len(), 2);
}

#[test]
fn due_events_are_released_before_the_end() {
    let mut order = Order::new(Micros::from_secs(60), true);
    let mut events = Vec::new();
    for second in 100..=161 {
        order.push(exact(second * 1_000_000 + 999_999), second);
    }
    order.release(&mut events);
    assert_eq!(events.iter().map(|(_, second)| *second).collect::<Vec<_>>(), [100]);
}
