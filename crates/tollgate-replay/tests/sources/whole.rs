//! From files to events in order, on many threads.

use std::io::Cursor;
use std::ops::ControlFlow;

use tollgate::{Micros, Timestamp};
use tollgate_replay::generate::{Traffic, address_of, write_combined};
use tollgate_replay::input::{Input, InputError, Part, in_order};
use tollgate_replay::log::{Fields, Reader, Stamp};
use tollgate_replay::order::Order;

/// The addresses in a log, in order and with their times.
fn events(log: &[u8], threads: usize) -> Vec<(Timestamp, u32)> {
    let worker = || {
        let mut reader = None;
        move |part: Result<Part, InputError>| -> Vec<(Stamp, u32)> {
            let Ok(Part::Lines(block)) = part else { panic!("{part:?}") };
            let beginning = &block.beginning().lines;
            let reader = reader
                .get_or_insert_with(|| Reader::open(None, beginning, &Fields::default()).unwrap());
            let mut parsed = Vec::new();
            for (_, line) in block.lines() {
                let line = reader.read(line).unwrap().unwrap();
                let address = std::str::from_utf8(line.address.unwrap()).unwrap();
                let address: std::net::Ipv4Addr = address.parse().unwrap();
                parsed.push((line.time, address.to_bits()));
            }
            parsed
        }
    };
    let mut order = Order::new(Micros::from_secs(60), true);
    let mut events = Vec::new();
    let input = Input::of("access.log", Cursor::new(log.to_vec()));
    in_order(input, threads, worker, |parsed: Vec<(Stamp, u32)>| {
        parsed.into_iter().for_each(|(stamp, address)| order.push(stamp, address));
        order.release(&mut events);
        ControlFlow::Continue(())
    });
    order.finish(&mut events);
    assert_eq!(order.late(), 0);
    events
}

#[test]
fn a_log_on_many_threads_is_the_traffic_that_it_was_made_of() {
    let traffic: Traffic = "poisson rate 300/s for 5min keys 1000".parse().unwrap();
    let mut log = Vec::new();
    write_combined(&traffic, &mut log).unwrap();
    let expected: Vec<u32> = traffic.events().map(|it| address_of(it.key).to_bits()).collect();
    for threads in [1, 3] {
        let found = events(&log, threads);
        assert!(found.is_sorted_by_key(|(at, _)| *at));
        assert_eq!(found.iter().map(|it| it.1).collect::<Vec<_>>(), expected, "{threads} threads");
        let moved = |((at, _), event): (&(Timestamp, u32), Timestamp)| {
            at.since(event).get().max(event.since(*at).get())
        };
        let times = traffic.events().map(|it| it.at);
        assert!(found.iter().zip(times).map(moved).all(|it| it < 1_000_000));
    }
}
