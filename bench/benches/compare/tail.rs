//! Latencies in an open loop at half of the saturation: `tollgate bench` sends requests when they
//! are due, and latencies count from then.

use anyhow::{Context, Result};
use bench::Effort;
use bench::process::{self, SERVER_CORE};
use bench::report::{Report, Tail};
use serde_json::Value;
use tollgate_testkit::Server as Redis;

use crate::peers::REDIS_CELL;
use crate::resp::redis_cell;
use crate::servers::Server;

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    let seconds = if effort.divisor == 1 { 10 } else { 1 };
    let policy = ["--policy", "api"];
    let http = Server::tollgate("--http", None)?;
    let url =
        |scheme: &str, server: &Server| format!("{scheme}://127.0.0.1:{}", server.port.number());
    measure(report, "HTTP", "tollgate", &url("http", &http), &policy, seconds)?;

    let resp = Server::tollgate("--resp", None)?;
    measure(report, "RESP", "tollgate", &url("redis", &resp), &policy, seconds)?;
    let redis = Redis::start();
    process::pin(redis.pid(), SERVER_CORE)?;
    let threshold = ["--threshold", "1000000"];
    measure(report, "RESP", "Redis, INCR and EXPIRE", &redis.url(), &threshold, seconds)?;

    if let Some(module) = REDIS_CELL.find(report) {
        let cell = redis_cell(&module);
        process::pin(cell.pid(), SERVER_CORE)?;
        let throttle = ["--command", "throttle", "--limit", "1000000/s burst 1000000"];
        measure(report, "RESP", "redis-cell", &cell.url(), &throttle, seconds)?;
    }

    let streams = ["--policy", "api", "--concurrency", "10", "--pipeline", "20"];
    // limitador's responses have no limit, which `tollgate bench` needs to see that one applies.
    let grpc = Server::tollgate("--grpc", None)?;
    measure(report, "gRPC", "tollgate", &url("grpc", &grpc), &streams, seconds)?;
    Ok(())
}

fn measure(
    report: &mut Report,
    protocol: &'static str,
    server: &str,
    url: &str,
    options: &[&str],
    seconds: u64,
) -> Result<()> {
    // In a closed loop, the rate is the saturation.
    let saturated = load(url, options, seconds)?;
    let rate = integer(&saturated, "/answers_per_second")? / 2;
    let per_second = rate.to_string();
    let at_rate = [options, &["--rate", &per_second]].concat();
    let outcome = load(url, &at_rate, seconds)?;
    let latency = |name| integer(&outcome, name).map(|nanos| nanos / 1_000);
    report.tails.push(Tail {
        protocol,
        server: server.to_owned(),
        rate,
        latencies_us: [
            latency("/latency_ns/p50")?,
            latency("/latency_ns/p99")?,
            latency("/latency_ns/p99.9")?,
        ],
        unsent: integer(&outcome, "/rate/unsent")?,
    });
    Ok(())
}

/// Runs `tollgate bench`; returns its report.
fn load(url: &str, options: &[&str], seconds: u64) -> Result<Value> {
    let (tollgate, duration) = (process::tollgate()?, format!("{seconds}s"));
    let tollgate = tollgate.to_str().context("the path of the binary is not UTF-8")?;
    let mut load = vec![tollgate, "bench", url, "--keys", "100000", "--duration", &duration];
    load.extend(["--output", "json"]);
    load.extend(options);
    Ok(serde_json::from_str(&process::run_load(&load)?)?)
}

fn integer(report: &Value, pointer: &str) -> Result<u64> {
    let value = report.pointer(pointer).and_then(Value::as_u64);
    value.with_context(|| format!("no {pointer} in {report}"))
}
