//! Every row and every property on a server and on a cluster: with an injected time, each field of each
//! decision equals that of the memory store and the model.
//!
//! `TOLLGATE_CASES=100000` runs that many cases of each property.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod system;

use tollgate_conformance::properties::{self, Plan, assert_holds};
use tollgate_conformance::rows::run_all;
use tollgate_testkit::{Cluster, Server};

use system::{Deployment, RedisSystem};

/// Runs every file of rows, each section in its own namespace.
fn assert_every_row_holds(deployment: &Deployment) {
    let run = run_all(|| deployment.open(), |time| deployment.clock.set(time));
    let report = deployment.block_on(run).unwrap();
    println!("{report}");
    assert!(report.failures.is_empty(), "\n{report}");
    assert!(report.rows > 1_900);
}

#[test]
fn every_row_holds_on_a_server() {
    let server = Server::start();
    assert_every_row_holds(&Deployment::server(&server));
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[test]
fn every_row_holds_on_a_server_without_functions() {
    let server = Server::start();
    server.command(&["ACL", "SETUSER", "default", "-fcall"]).expect_no_error("ACL SETUSER");
    assert_every_row_holds(&Deployment::server(&server));
    let statistics = server.command(&["INFO", "commandstats"]).text();
    assert!(statistics.contains("cmdstat_evalsha:"), "{statistics}");
}

#[test]
fn every_row_holds_on_a_cluster() {
    let cluster = Cluster::start(3, 1);
    assert_every_row_holds(&Deployment::cluster(&cluster));
    assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
}

/// Runs each property on a server, and on a cluster with a part of the cases.
macro_rules! properties {
    ($($name:ident: $cases:literal;)*) => {
        #[test]
        fn every_property_holds_on_a_cluster() {
            let cluster = Cluster::start(3, 1);
            let mut system = RedisSystem::new(Deployment::cluster(&cluster));
            $(
                let plan = Plan::new($cases / 8, 4);
                assert_holds(plan, &[], properties::$name(&mut system, plan));
            )*
            assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
        }

        $(
            #[test]
            fn $name() {
                let server = Server::start();
                let mut system = RedisSystem::new(Deployment::server(&server));
                let plan = Plan::new($cases, 5);
                assert_holds(plan, &[], properties::$name(&mut system, plan));
                assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
            }
        )*
    };
}

// The first six run 100,000 steps together.
properties! {
    equals_model: 1_600;
    equals_model_with_clock_steps: 1_600;
    equals_model_with_bans: 1_600;
    equals_model_through_policy_changes: 1_600;
    equals_model_in_batches: 1_600;
    equals_model_with_settlements: 1_600;
    admissions_stay_within_bound: 80;
    predictions_are_exact: 80;
    denials_leave_no_trace: 80;
    peeks_leave_no_trace: 80;
    keys_are_independent: 80;
    order_changes_nothing: 80;
    answers_are_consistent: 80;
    settling_equals_checking: 80;
    settling_gives_back_no_more: 80;
    refund_undoes_a_check: 80;
    refund_keeps_within_capacity: 80;
    less_used_admits_more: 80;
    higher_limit_admits_more: 80;
    shifted_time_changes_nothing: 80;
    scaled_units_change_nothing: 80;
    clock_steps_do_not_lock_keys: 80;
    clock_step_admits_one_more_capacity: 80;
    repeats_charge_once: 80;
    request_ids_expire_at_horizon: 80;
    two_versions_admit_at_most_the_larger: 80;
    changed_policy_applies_at_once: 80;
    leases_match_ledger: 80;
    reservations_match_ledger: 80;
}
