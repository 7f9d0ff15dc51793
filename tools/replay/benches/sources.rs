//! The cost per line of each step from a file to ordered events, for a log with a million
//! addresses: `cargo bench -p tollgate-replay --bench sources`. Prints the best of several rounds,
//! on one thread unless stated otherwise.
#![expect(
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::float_arithmetic,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and prints its results"
)]

use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tollgate::{Cost, Micros};
use tollgate_replay::generate::{Traffic, address_of, write_combined};
use tollgate_replay::input::{Block, Input, Part};
use tollgate_replay::log::{Fields, Format, Line, Reader, Stamp};
use tollgate_replay::order::Order;
use tollgate_replay::{
    Candidate, Log, LogRequest, Options, PlainCheck, Replay, RequestExtractor, Skip,
};

const ROUNDS: usize = 5;

fn main() {
    let traffic: Traffic = "zipf rate 20000/s for 50s keys 1000000".parse().unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut log = Vec::new();
    let lines = write_combined(&traffic, &mut log).unwrap();
    println!("{lines} lines, {} bytes each", log.len() as u64 / lines);

    show("generate", lines, None, || {
        for event in traffic.events() {
            black_box(event);
        }
    });
    show("write as a combined log", lines, Some(log.len()), || {
        write_combined(&traffic, io::sink()).unwrap();
    });
    show("parse combined", lines, Some(log.len()), || parse(Format::Combined, &log));
    let json = rewritten(&traffic, "", json_line);
    show("parse JSON", lines, Some(json.len()), || parse(Format::Json, &json));
    let csv = rewritten(&traffic, "time,key,cost,note\n", |at, address| {
        format!("{at},{address},1,/api/v1/items/17\n")
    });
    show("parse CSV", lines, Some(csv.len()), || parse(Format::Csv, &csv));
    order(lines);
    files(&folder, &log, lines);
}

/// Prints the best of several rounds.
fn show(name: &str, lines: u64, bytes: Option<usize>, mut work: impl FnMut()) {
    let round = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    let best = (0..ROUNDS).map(round).min().unwrap_or(Duration::ZERO);
    let nanos = best.as_nanos() as f64 / lines as f64;
    let rate = bytes.map_or_else(String::new, |bytes| {
        format!("{:8.0} MB/s", bytes as f64 / best.as_secs_f64() / 1e6)
    });
    println!("{name:36} {nanos:8.1} ns a line{rate}");
}

fn parse(format: Format, log: &[u8]) {
    let mut reader = Reader::open(Some(format), log, &Fields::default()).unwrap();
    for line in lines_of(log) {
        if let Some(line) = reader.read(line).unwrap() {
            black_box((line.time, line.address, line.target, line.key));
        }
    }
}

fn lines_of(log: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', log).map(move |end| {
        let line = &log[start..end];
        start = end + 1;
        line
    })
}

/// The traffic with one line for each request, from its time and its address.
fn rewritten(
    traffic: &Traffic,
    header: &str,
    line: impl Fn(String, Ipv4Addr) -> String,
) -> Vec<u8> {
    let mut text = header.to_owned();
    for request in traffic.events() {
        text += &line(request.at.to_string(), address_of(request.key));
    }
    text.into_bytes()
}

fn json_line(at: String, address: Ipv4Addr) -> String {
    format!(
        "{{\"ts\":{at},\"level\":\"info\",\"request\":{{\"remote_ip\":\"{address}\",\
         \"method\":\"GET\",\"host\":\"a.example\",\"uri\":\"/api/v1/items/17\",\
         \"headers\":{{\"User-Agent\":[\"curl/8.5\"]}}}},\"duration\":0.001,\"status\":200}}\n"
    )
}

fn order(lines: u64) {
    let stamps = |late: u64| {
        (0..lines).map(move |n| {
            let second = 1_767_225_600 + n / 20_000 - if n % 7 == 0 { late } else { 0 };
            let at = tollgate::Timestamp::from_micros(second * 1_000_000);
            (Stamp { at, whole_second: true }, (n, 1_u64))
        })
    };
    let run = |late| {
        let mut order = Order::new(Micros::from_secs(60), true);
        let mut events = Vec::new();
        for (at, (stamp, event)) in stamps(late).enumerate() {
            order.push(stamp, event);
            if at % 5_000 == 0 {
                events.clear();
                order.release(&mut events);
                black_box(&events);
            }
        }
        events.clear();
        order.finish();
        order.release(&mut events);
        black_box(&events);
    };
    show("order, all in order", lines, None, || run(0));
    show("order, one of seven 30 s late", lines, None, || run(30));
}

fn files(folder: &Path, log: &[u8], lines: u64) {
    let plain = folder.join("sources.log");
    fs::write(&plain, log).unwrap();
    let gzip = folder.join("sources.log.gz");
    let mut encoder = GzEncoder::new(fs::File::create(&gzip).unwrap(), flate2::Compression::new(6));
    encoder.write_all(log).unwrap();
    encoder.finish().unwrap();
    let zstd = folder.join("sources.log.zst");
    fs::write(&zstd, compress_to_vec(log, CompressionLevel::Fastest)).unwrap();

    for path in [&plain, &gzip, &zstd] {
        let name = path.extension().unwrap().display();
        show(&format!("read {name} (a thread ahead)"), lines, Some(log.len()), || {
            let blocks = Input::open([path]).map(lines_in);
            black_box(blocks.map(|block| block.bytes().len()).sum::<usize>());
        });
    }
    for threads in [1, 2] {
        let name = format!("replay of one limit, {threads} threads");
        show(&name, lines, Some(log.len()), || replay(&plain, threads));
    }
    for path in [plain, gzip, zstd] {
        fs::remove_file(path).unwrap();
    }
}

fn lines_in(part: Result<Part, tollgate_replay::input::InputError>) -> Block {
    match part {
        Ok(Part::Lines(block)) => block,
        other => panic!("{other:?}"),
    }
}

/// The key is the address.
#[derive(Debug)]
struct ByAddress;

impl RequestExtractor for ByAddress {
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip> {
        key.extend_from_slice(line.address.ok_or(Skip::NoKey)?);
        Ok(PlainCheck { policy: 0, cost: Cost::ONE })
    }

    fn request(&self, _: &Line<'_>, _: u64) -> Result<LogRequest, Skip> {
        Err(Skip::NoRule)
    }
}

/// A whole replay: reading, parsing, ordering, deciding, and the summary.
fn replay(path: &Path, threads: usize) {
    let candidates = [Candidate::new("10/s burst 20", "10/s burst 20".parse().unwrap())];
    let stop = AtomicBool::new(false);
    let options = Options { threads, ..Options::default() };
    let replay = Replay { candidates: &candidates, options, stop: &stop, progress: &mut |_| {} };
    let log = Log::new(Input::open([path]), None, Fields::default());
    black_box(replay.parallel(log, &ByAddress).unwrap());
}
