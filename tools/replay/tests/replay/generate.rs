//! Synthetic traffic: each shape, and its reproducibility.

use std::collections::BTreeMap;

use tollgate::Timestamp;
use tollgate_replay::generate::{
    Shape, SyntheticRequest, Traffic, address_of, key_of, write_combined,
};
use tollgate_replay::log::{Fields, Format, Reader};

fn traffic(text: &str) -> Traffic {
    text.parse().unwrap()
}

fn events(text: &str) -> Vec<SyntheticRequest> {
    let traffic = traffic(text);
    let events: Vec<SyntheticRequest> = traffic.events().collect();
    assert!(events.is_sorted_by_key(|request| request.at), "{text}");
    let end = traffic.start.saturating_add(traffic.duration);
    assert!(events.iter().all(|request| (traffic.start..end).contains(&request.at)), "{text}");
    assert!(events.iter().all(|request| request.key < traffic.keys), "{text}");
    events
}

/// The number of requests in each span of this many seconds.
fn counts(text: &str, seconds: u64) -> Vec<usize> {
    let start = traffic(text).start;
    let mut counts = BTreeMap::new();
    for event in events(text) {
        *counts.entry(event.at.duration_since(start).get() / 1_000_000 / seconds).or_insert(0) += 1;
    }
    let last = counts.keys().last().copied().unwrap_or(0);
    (0..=last).map(|n| counts.get(&n).copied().unwrap_or(0)).collect()
}

fn times(text: &str) -> String {
    let start = traffic(text).start;
    let times = events(text).into_iter().map(|event| event.at.duration_since(start).to_string());
    times.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_shape_is_reproducible_and_has_its_rate() {
    for shape in Shape::ALL {
        let name = shape.name();
        let text = format!("{name} rate 50/s for 1h keys 10 window 1min");
        let found = events(&text);
        assert_eq!(found, events(&text), "{name}");
        let expected = 50.0 * 3_600.0;
        let off = f64::from(u32::try_from(found.len()).unwrap()) / expected - 1.0;
        assert!(off.abs() < 0.02, "{name}: {} events", found.len());
        let is_random = matches!(shape, Shape::Poisson | Shape::Zipf | Shape::Diurnal);
        assert_eq!(found != events(&format!("{text} seed 2")), is_random, "{name}");
    }
}

#[test]
fn steady_traffic_is_even_and_its_keys_take_turns() {
    assert_eq!(times("steady rate 3/s for 2s"), "0 0.333333 0.666666 1 1.333333 1.666666");
    assert_eq!(times("steady rate 1/h for 3h"), "0 3600 7200");
    let keys: Vec<u32> =
        events("steady rate 5/s for 1s keys 2").iter().map(|event| event.key).collect();
    assert_eq!(keys, [0, 1, 0, 1, 0]);
}

#[test]
fn a_burst_is_all_of_a_window_at_once() {
    assert_eq!(times("bursts rate 1/s for 7s window 3s"), "0 0 0 3 3 3 6 6 6");
    assert_eq!(times("bursts rate 1/2s for 9s window 3s"), "0 3 3 6");
    assert_eq!(times("bursts rate 1/10s for 45s window 3s"), "9 18 27 39");
    assert_eq!(times("bursts rate 1/365d for 1s window 1ms"), "");
}

#[test]
fn a_stampede_is_twice_a_window_across_its_edge() {
    // The start is an edge, but its flood would begin earlier, so the first flood is at the next
    // edge.
    let text = "stampede rate 10/s for 4min window 1min keys 1";
    let all = events(text);
    let expected = counts(text, 6);
    assert_eq!(all.len(), 2_400);
    let floods: Vec<(usize, usize)> =
        expected.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    assert_eq!(floods, [(9, 600), (10, 600), (29, 600), (30, 600)]);
}

#[test]
fn diurnal_traffic_is_low_at_night() {
    let hours = counts("diurnal rate 10/s for 2d", 3_600);
    assert_eq!(hours.len(), 48);
    for day in hours.chunks(24) {
        assert!(day[0] < 36_000 / 5 && day[23] < 36_000 / 5, "{day:?}");
        assert!(day[11] > 36_000 * 9 / 5 && day[12] > 36_000 * 9 / 5, "{day:?}");
    }
    let minutes = counts("diurnal rate 100/s for 10min", 60);
    assert!(minutes[0] < minutes[2] && minutes[2] < minutes[4], "{minutes:?}");
    assert!(minutes[5] > minutes[7] && minutes[7] > minutes[9], "{minutes:?}");
}

#[test]
fn keys_have_unique_names_and_addresses() {
    assert_eq!(key_of(17), "user:17");
    assert_eq!(address_of(0).to_string(), "10.0.0.0");
    assert_eq!(address_of((1 << 24) - 1).to_string(), "10.255.255.255");
}

#[test]
fn a_written_log_contains_the_same_requests() {
    let traffic = traffic("zipf rate 100/s for 1min keys 1000000");
    let mut log = Vec::new();
    let lines = write_combined(&traffic, &mut log).unwrap();
    let expected: Vec<SyntheticRequest> = traffic.events().collect();
    assert_eq!(lines, u64::try_from(expected.len()).unwrap());
    assert!((150..250).contains(&(log.len() / expected.len())), "{}", log.len() / expected.len());

    let mut reader = Reader::open(None, &log, &Fields::default()).unwrap();
    assert_eq!(reader.format, Format::Combined);
    for (line, event) in log.split(|log| *log == b'\n').zip(expected) {
        let line = reader.read(line).unwrap().unwrap();
        let second = event.at.as_micros() / 1_000_000 * 1_000_000;
        assert_eq!(line.time.at, Timestamp::from_micros(second));
        assert_eq!(line.address, Some(address_of(event.key).to_string().as_bytes()));
        assert!(line.target.is_some() && line.header("user-agent").is_some());
    }

    let mut log = Vec::new();
    write_combined(&"steady rate 2/s for 1s".parse().unwrap(), &mut log).unwrap();
    let log = String::from_utf8(log).unwrap();
    assert!(log.starts_with(r#"10.0.0.0 - - [01/Jan/2026:00:00:00 +0000] "GET /"#), "{log}");
}

#[test]
fn absurd_parameters_terminate() {
    use tollgate::Micros;
    use tollgate_replay::generate::Rate;
    for shape in Shape::ALL {
        let none = Rate { count: 0, per: Micros::ZERO };
        let traffic =
            Traffic { shape, rate: none, keys: 0, window: Micros::ZERO, ..Traffic::default() };
        assert_eq!(traffic.events().count(), 0, "{shape:?}");
        let far = Traffic { shape, start: Timestamp::MAX, keys: 0, ..Traffic::default() };
        assert!(far.events().take(10).all(|request| request.at == Timestamp::MAX), "{shape:?}");
        let rate = Rate { count: u64::MAX, per: Micros::new(1) };
        let much = Traffic { shape, rate, window: Micros::new(u64::MAX), ..Traffic::default() };
        assert!(much.events().take(10).is_sorted_by_key(|request| request.at), "{shape:?}");
    }
}
