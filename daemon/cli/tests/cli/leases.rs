//! Daemons that lease quota of one key, some of which are killed or stopped.
#![allow(clippy::disallowed_methods, reason = "the test measures when requests are admitted")]

use std::net::TcpStream;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tollgate_testkit::{Folder, Network, Server};

use crate::client::{Client, send};
use crate::process::{Daemon, run, tollgate};

const DAEMONS: usize = 10;
const RATE: u64 = 1_000;
const BURST: u64 = 1_000;
/// The time of the load in ms, and until one daemon is killed and another one is stopped.
const LOAD: u64 = 4_000;
const FAULT: u64 = 1_500;

/// When an admitted request was sent and its response was received, in µs.
type Admission = (u64, u64);

/// Checks a key of a daemon until a time in ms.
fn check_until(
    end: u64,
    address: &str,
    start: Instant,
    pause: Duration,
) -> (Vec<Admission>, usize) {
    let mut client = Client::new(TcpStream::connect(address).unwrap());
    let now = || u64::try_from(start.elapsed().as_micros()).unwrap();
    let (mut admitted, mut leased) = (Vec::new(), 0);
    while now() < end * 1_000 {
        let sent = now();
        let body = r#"{"policy":"hot","key":"k"}"#;
        let response = client.send("POST /v1/check", &["Host: localhost"], body);
        leased += usize::from(response.body.contains(r#""source":"lease""#));
        if response.status == 200 {
            admitted.push((sent, now()));
        }
        sleep(pause);
    }
    (admitted, leased)
}

/// Fails if more was certainly admitted between two times than the token bucket permits.
fn assert_bounded(mut admitted: Vec<Admission>) {
    admitted.sort_unstable_by_key(|(_, received)| *received);
    let last = admitted.last().map_or(0, |(_, received)| *received);
    for begin in (0..last).step_by(50_000) {
        let within = admitted.iter().filter(|(sent, _)| *sent >= begin);
        for (count, (_, received)) in (1..).zip(within) {
            let bound = BURST + RATE * (received - begin) / 1_000_000;
            assert!(count <= bound, "{count} of {bound} from {begin} to {received} µs");
        }
    }
}

#[test]
fn killed_and_stopped_daemons_never_let_a_leased_limit_be_exceeded() {
    let server = Server::start();
    // With the default deadline, a busy machine would fail calls of the store, and decide without it.
    let yaml = format!(
        "store: {{ url: \"{}\", deadline: 1s }}\n\
         policies: {{ hot: {{ limits: [{RATE}/s burst {BURST}], mode: leased }} }}",
        server.url()
    );
    let mut daemons: Vec<_> = (0..DAEMONS).map(|_| Daemon::with_config(&yaml, |c| c)).collect();
    let start = Instant::now();
    let mut clients: Vec<_> = (1..)
        .zip(&daemons)
        .map(|(rank, daemon)| {
            let (address, pause) = (daemon.address().to_owned(), Duration::from_micros(300 * rank));
            // The first daemon is killed while it holds quota.
            let end = if rank == 1 { FAULT } else { LOAD };
            spawn(move || check_until(end, &address, start, pause))
        })
        .collect();
    let inspect = |daemon: &Daemon| run(["inspect", "hot", "k", "--url", &daemon.url]);
    let is_shown = |daemon| inspect(daemon).1.contains(", charged in advance, for up to ");
    let mut others = daemons[2..].iter().cycle().take(50);
    assert!(others.any(is_shown), "{:?}", inspect(&daemons[2]));
    let (mut admitted, mut leased) = clients.remove(0).join().unwrap();
    daemons[0].kill();
    daemons[1].signal(Signal::STOP);
    sleep(Duration::from_millis(250));
    daemons[1].signal(Signal::CONT);
    for client in clients {
        let seen = client.join().unwrap();
        admitted.extend(seen.0);
        leased += seen.1;
    }
    let page = send(daemons[2].metrics_address(), "GET /metrics", &[], "").body;
    assert!(page.contains("tollgate_lease_requests_total"), "{page}");
    assert!(leased > 0 && !admitted.is_empty());
    assert_bounded(admitted);
}

/// One daemon cannot send to the store for a while, and then none can. Their clients reach them all the
/// time.
#[test]
fn daemons_that_are_cut_off_from_the_store_never_let_a_leased_limit_be_exceeded() {
    let Some(network) = Network::create(4) else { return };
    let server = Server::start_on(&network, 0);
    let folder = Folder::create();
    let config = folder.write(
        "tollgate.yaml",
        format!(
            "store: {{ url: \"{}\" }}\npolicies: {{ hot: {{ limits: [{RATE}/s burst {BURST}], \
             mode: leased, on_store_error: deny }} }}",
            server.url()
        ),
    );
    let daemons = [1, 2, 3].map(|index| {
        let program = tollgate().get_program().to_str().unwrap().to_owned();
        let mut command = network.command(index, &program);
        let listen = format!("{}:0", network.address_of(index));
        command.args(["serve", "--http", &listen, "--metrics", "off", "--admin", "off"]);
        command.args(["--grpc", "off", "--resp", "off", "--config"]).arg(&config);
        Daemon::spawn(&mut command)
    });
    let start = Instant::now();
    let clients = daemons.each_ref().map(|daemon| {
        let address = daemon.address().to_owned();
        spawn(move || check_until(LOAD, &address, start, Duration::from_micros(300)))
    });
    let wait_until = |millis| sleep(Duration::from_millis(millis).saturating_sub(start.elapsed()));
    wait_until(800);
    network.separate(1, 0);
    wait_until(1_800);
    network.reunite(1, 0);
    wait_until(2_200);
    network.isolate(0);
    wait_until(2_600);
    network.reconnect(0);
    let seen = clients.map(|client| client.join().unwrap());
    for (index, (admitted, leased)) in seen.iter().enumerate() {
        let during = |from: u64, to: u64| {
            admitted.iter().filter(|(sent, _)| (from * 1_000..to * 1_000).contains(sent)).count()
        };
        let [cut_off, again] = [during(1_300, 1_800), during(3_400, LOAD)];
        println!("{} admitted, {leased} by leases; {cut_off}, {again}", admitted.len());
        assert!(*leased > 0 && again > 0, "daemon {index}");
        assert_eq!(cut_off == 0, index == 0, "daemon {index} admitted {cut_off}");
    }
    assert_bounded(seen.into_iter().flat_map(|(admitted, _)| admitted).collect());
}
