//! The faults.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tollgate_testkit::{Cluster, Proxy, Sentinel, Server, slot_of, until};

use crate::fleet::Fleet;
use crate::run::{Bound, Measurement, Run};
use crate::scale::Scale;

/// A fault, and what is promised for it.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) fault: &'static str,
    pub(crate) promise: &'static str,
    pub(crate) run: fn(&Scale) -> Measurement,
}

const OUTAGE: &str = "limit + shares = 2 limits";
const FAILOVER: &str = "limit + 1 limit for each failover";

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { fault: "server killed, then restarted with its data", promise: OUTAGE, run: killed },
    Scenario { fault: "server stopped (`SIGSTOP`)", promise: OUTAGE, run: stopped },
    Scenario { fault: "network drops all packets", promise: OUTAGE, run: blackhole },
    Scenario { fault: "500 ms more latency", promise: OUTAGE, run: slow },
    Scenario { fault: "replies lost after execution", promise: OUTAGE, run: lost_replies },
    Scenario { fault: "server out of memory", promise: OUTAGE, run: out_of_memory },
    Scenario { fault: "stalls of 100 ms", promise: OUTAGE, run: stalls },
    Scenario {
        fault: "three of ten processes cut off",
        promise: "limit + their shares = 1.3 limits",
        run: isolated,
    },
    Scenario {
        fault: "one cluster node slow, another down from the start",
        promise: OUTAGE,
        run: cluster_nodes,
    },
    Scenario { fault: "failovers by Sentinel", promise: FAILOVER, run: sentinel_failovers },
    Scenario { fault: "failovers of a cluster", promise: FAILOVER, run: cluster_failovers },
    Scenario { fault: "endpoint moves to another server", promise: FAILOVER, run: moved_endpoint },
    Scenario { fault: "daemon stopped during an outage", promise: OUTAGE, run: stopped_daemon },
];

/// The number of keys of each policy.
const KEYS: usize = 2;

fn store(url: &str) -> String {
    format!("url: \"{url}\"")
}

fn persistent_server() -> Server {
    Server::with(|config| config.line("appendonly yes"))
}

/// Measures an outage of a server.
fn outage(scale: &Scale, server: &Server, fault: impl FnOnce()) -> Measurement {
    let fleet = Fleet::start(scale, |_| store(&server.url()));
    Run::measure(scale, &fleet, KEYS, Bound::Outage, |_| fault())
}

/// Measures an outage between a server and the daemons, each of which has a proxy.
fn proxied(scale: &Scale, fault: impl FnOnce(&[Proxy])) -> Measurement {
    let server = Server::start();
    let proxies: Vec<_> = (0..scale.daemons).map(|_| Proxy::before(&server)).collect();
    let fleet = Fleet::start(scale, |index| store(&proxies[index].url()));
    Run::measure(scale, &fleet, KEYS, Bound::Outage, |_| {
        fault(&proxies);
        proxies.iter().for_each(Proxy::clear_faults);
    })
}

fn killed(scale: &Scale) -> Measurement {
    let server = persistent_server();
    outage(scale, &server, || {
        server.kill();
        sleep(scale.outage);
        server.restart();
    })
}

fn stopped(scale: &Scale) -> Measurement {
    let server = Server::start();
    outage(scale, &server, || {
        server.pause();
        sleep(scale.outage);
        server.resume();
    })
}

fn blackhole(scale: &Scale) -> Measurement {
    proxied(scale, |proxies| {
        proxies.iter().for_each(|proxy| proxy.blackhole(true));
        sleep(scale.outage);
    })
}

fn slow(scale: &Scale) -> Measurement {
    proxied(scale, |proxies| {
        proxies.iter().for_each(|proxy| proxy.delay(Duration::from_millis(500)));
        sleep(scale.outage);
    })
}

fn lost_replies(scale: &Scale) -> Measurement {
    proxied(scale, |proxies| {
        let start = Instant::now();
        while start.elapsed() < scale.outage {
            for proxy in proxies {
                proxy.only(&["FCALL"]);
                proxy.cut_after_execution(1);
            }
            sleep(Duration::from_millis(50));
        }
    })
}

fn out_of_memory(scale: &Scale) -> Measurement {
    let server = Server::with(|config| config.line("maxmemory-policy noeviction"));
    outage(scale, &server, || {
        let limit = |bytes| {
            let reply = server.command(&["CONFIG", "SET", "maxmemory", bytes]);
            reply.expect_no_error("CONFIG SET");
        };
        limit("1");
        sleep(scale.outage);
        limit("0");
    })
}

fn stalls(scale: &Scale) -> Measurement {
    let server = Server::start();
    outage(scale, &server, || {
        let start = Instant::now();
        while start.elapsed() < scale.outage {
            server.pause();
            sleep(Duration::from_millis(100));
            server.resume();
            sleep(Duration::from_millis(400));
        }
    })
}

fn isolated(scale: &Scale) -> Measurement {
    const COUNT: usize = 3;
    let server = Server::start();
    let proxies: Vec<_> = (0..10).map(|_| Proxy::before(&server)).collect();
    let fleet = Fleet::with_daemons(10, scale, |index| store(&proxies[index].url()));
    Run::measure(scale, &fleet, KEYS, Bound::Isolated(COUNT), |_| {
        proxies[..COUNT].iter().for_each(|proxy| proxy.blackhole(true));
        sleep(scale.outage);
        proxies.iter().for_each(Proxy::clear_faults);
    })
}

/// The node that has the record of the processes answers in time; the others do not.
fn cluster_nodes(scale: &Scale) -> Measurement {
    let cluster = Cluster::with(3, 0, |config| {
        config.line("appendonly yes").line("cluster-require-full-coverage no")
    });
    let record = {
        let _first = Fleet::with_daemons(1, scale, |_| store(&cluster.url()));
        until(|| cluster.keys("tollgate").into_iter().find(|key| key.contains("processes")))
            .unwrap()
    };
    let home = cluster.primary_of_slot(slot_of(&record));
    let others: Vec<_> = (0..3).filter(|index| *index != home).collect();
    let [slow, down] = others[..] else { panic!("three nodes") };
    let [slow, down] = [slow, down].map(|index| &cluster.nodes()[index]);
    let proxy = Proxy::to(SocketAddr::from(([127, 0, 0, 1], slow.port())));
    down.kill();
    // The record has the first daemon for some seconds.
    let fleet = Fleet::start(scale, |_| {
        let map = format!("{{ \"{}\": \"{}\" }}", slow.address(), proxy.address());
        format!("{}, address_map: {map}", store(&cluster.url()))
    });
    Run::measure(scale, &fleet, 8, Bound::Outage, |_| {
        proxy.delay(Duration::from_millis(500));
        sleep(scale.outage);
        proxy.clear_faults();
        down.restart();
        cluster.settle();
    })
}

fn sentinel_failovers(scale: &Scale) -> Measurement {
    let sentinel = Sentinel::start();
    let fleet = Fleet::start(scale, |_| store(&sentinel.url()));
    let bound = Bound::Failovers(scale.failovers);
    Run::measure(scale, &fleet, KEYS, bound, |run| {
        for number in 1..=scale.failovers {
            run.note_loss();
            if number % scale.kill_each == 0 {
                let primary = sentinel.kill_primary();
                sentinel.settle();
                run.note_loss();
                run.recover();
                primary.restart();
                // The sentinels turn it into a replica.
                sentinel.settle();
            } else {
                request_failover(&sentinel);
                run.note_loss();
                run.recover();
            }
        }
    })
}

/// Asks a sentinel for a failover, and waits for its end.
fn request_failover(sentinel: &Sentinel) {
    let before = sentinel.primary_port();
    let request = || {
        let reply = sentinel.sentinels()[0].command(&["SENTINEL", "FAILOVER", "mymaster"]);
        // Until the previous one has ended everywhere, another one is refused.
        (!reply.is_error()).then_some(())
    };
    until(request).unwrap();
    until(|| (sentinel.primary_port() != before).then_some(())).unwrap();
    sentinel.settle();
}

/// Each shard in turn, so that the same node is not promoted twice within five seconds.
fn cluster_failovers(scale: &Scale) -> Measurement {
    let cluster = Cluster::start(3, 1);
    let fleet = Fleet::start(scale, |_| store(&cluster.url()));
    let bound = Bound::Failovers(scale.failovers);
    Run::measure(scale, &fleet, 8, bound, |run| {
        for number in 1..=scale.failovers {
            let slot = [0, 6_000, 12_000][number % 3];
            run.note_loss();
            let primary = cluster.primary_of_slot(slot);
            if number % scale.kill_each == 0 {
                cluster.kill_primary_of(slot);
                cluster.settle();
            } else {
                cluster.failover(cluster.replicas_of(primary)[0]);
            }
            run.note_loss();
            run.recover();
            if number % scale.kill_each == 0 {
                cluster.nodes()[primary].restart();
                cluster.settle();
            }
        }
        let primaries: BTreeSet<_> = cluster.primaries().into_iter().collect();
        assert_ne!(primaries, [0, 1, 2].into());
    })
}

/// A name that points to another server, as that of a managed service after a failover.
fn moved_endpoint(scale: &Scale) -> Measurement {
    let first = Server::start();
    let second =
        Server::with(|config| config.line(&format!("replicaof 127.0.0.1 {}", first.port())));
    let proxies: Vec<_> = (0..scale.daemons).map(|_| Proxy::before(&first)).collect();
    let fleet = Fleet::start(scale, |index| store(&proxies[index].url()));
    let is_connected = || {
        second.command(&["ROLE"]).array().get(3).is_some_and(|state| state.text() == "connected")
    };
    until(|| is_connected().then_some(())).unwrap();
    Run::measure(scale, &fleet, KEYS, Bound::Failovers(1), |run| {
        run.note_loss();
        first.kill();
        sleep(scale.outage);
        second.command(&["REPLICAOF", "NO", "ONE"]).expect_no_error("REPLICAOF");
        proxies.iter().for_each(|proxy| proxy.move_to(&second));
    })
}

/// The daemon waits for `drain.delay`, in which the server returns.
fn stopped_daemon(scale: &Scale) -> Measurement {
    let server = persistent_server();
    let fleet = Fleet::start(scale, |_| store(&server.url()));
    Run::measure(scale, &fleet, KEYS, Bound::Outage, |run| {
        server.kill();
        sleep(scale.outage);
        run.terminate(0);
        server.restart();
        run.recover();
        let process = format!("/proc/{}/stat", fleet.daemons[0].id());
        let has_ended = || {
            let stat = std::fs::read_to_string(&process).unwrap();
            stat.contains(") Z ").then_some(())
        };
        until(has_ended).unwrap();
        assert!(!fleet.log(0).contains("not charged"), "{}", fleet.log(0));
    })
}
