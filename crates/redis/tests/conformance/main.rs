//! Every row and every property, on a server, behind it on a cluster: with the time brought along,
//! each field of each decision is what memory and the model say.
//!
//! `TOLLGATE_CASES=100000` runs that many cases of each property.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod place;
mod subject;

use tollgate_conformance::properties::{self, Coverage, Plan, Violation};
use tollgate_conformance::rows::{files, read, run};
use tollgate_testkit::{Cluster, Server};

use place::Place;
use subject::RedisSubject;

/// Runs every file of rows, each section under a namespace of its own.
fn every_row_holds(place: &Place) {
    let (mut failed, mut total) = (String::new(), 0);
    for name in files().unwrap() {
        let rows = read(&name).unwrap_or_else(|error| panic!("{error}"));
        let fresh = || place.open();
        let report = place.block_on(run(&rows, fresh, |time| place.clock.set(time)));
        assert_eq!(report.rows, rows.count(), "{name}");
        total += report.rows;
        report.failures.iter().for_each(|failure| failed += &format!("{failure}\n"));
    }
    println!("{total} rows");
    assert!(failed.is_empty(), "\n{failed}");
    assert!(total > 1_900);
}

#[test]
fn every_row_holds_on_a_server() {
    let server = Server::start();
    every_row_holds(&Place::server(&server));
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[test]
fn every_row_holds_on_a_cluster() {
    let cluster = Cluster::start(3, 1);
    every_row_holds(&Place::cluster(&cluster));
    assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
}

fn plan(cases: u32, seed: u8) -> Plan {
    let asked = std::env::var("TOLLGATE_CASES").ok();
    Plan { cases: asked.and_then(|x| x.parse().ok()).unwrap_or(cases), seed }
}

/// Holds that a property held, and that it saw enough to have shown something.
fn check(plan: Plan, outcome: Result<Coverage, Violation>) {
    let seen = outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{seen:?}");
    assert_eq!(seen.cases, u64::from(plan.cases), "all cases ran");
    assert!(seen.admitted > 0 && seen.denied > 0, "{seen:?}");
}

/// Runs each property on a server, and on a cluster with a part of the cases.
macro_rules! properties {
    ($($name:ident: $cases:literal;)*) => {
        #[test]
        fn every_property_holds_on_a_cluster() {
            let cluster = Cluster::start(3, 1);
            let mut subject = RedisSubject::new(Place::cluster(&cluster));
            $(
                let it = plan($cases / 8, 4);
                check(it, properties::$name(&mut subject, it));
            )*
            assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
        }

        $(
            #[test]
            fn $name() {
                let server = Server::start();
                let mut subject = RedisSubject::new(Place::server(&server));
                let it = plan($cases, 5);
                check(it, properties::$name(&mut subject, it));
                assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
            }
        )*
    };
}

// Of the first four together 100,000 steps.
properties! {
    equals_model: 1_600;
    equals_model_with_a_clock_that_steps: 1_600;
    equals_model_through_changes: 1_600;
    equals_model_in_batches: 1_600;
    keeps_its_bound: 80;
    tells_the_future: 80;
    denials_leave_no_trace: 80;
    peeks_leave_no_trace: 80;
    keys_are_alone: 80;
    order_changes_nothing: 80;
    answers_agree_with_themselves: 80;
    refund_undoes_a_check: 80;
    refund_keeps_within_capacity: 80;
    less_used_admits_more: 80;
    higher_limit_admits_more: 80;
    another_time_changes_nothing: 80;
    other_units_change_nothing: 80;
    steps_do_not_lock_out: 80;
    a_step_costs_one_limit: 80;
    repeats_charge_once: 80;
    ids_last_their_horizon: 80;
    two_forms_admit_the_larger: 80;
    a_change_holds_from_then_on: 80;
    leases_hold_their_places: 80;
    reservations_are_kept: 80;
}
