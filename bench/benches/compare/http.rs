//! Single checks over HTTP/1.1: `wrk` with 50 connections, one request in flight on each.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use bench::Effort;
use bench::process;
use bench::report::{Report, Row, Sample};
use tollgate_testkit::Port;

use crate::peers::{GUBERNATOR, THROTTLECRAB};
use crate::servers::{Server, file};

/// A server, and the request of a check. The word KEY in the body becomes a random key.
pub(crate) struct Target {
    pub(crate) server: Server,
    pub(crate) path: &'static str,
    pub(crate) body: &'static str,
}

impl Target {
    /// The request of a check of this key.
    pub(crate) fn request(&self, key: &str) -> Vec<u8> {
        let (path, body) = (self.path, self.body.replace("KEY", key));
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// Starts Tollgate and its peers.
pub(crate) fn targets(report: &mut Report) -> Result<Vec<(String, Target)>> {
    let mut targets = vec![(
        "tollgate".to_owned(),
        Target {
            server: Server::tollgate("--http", None)?,
            path: "/v1/check",
            body: r#"{"policy":"api","key":"KEY"}"#,
        },
    )];
    if let Some(target) = throttlecrab(report)? {
        targets.push(("throttlecrab".to_owned(), target));
    }
    if let Some(server) = Server::limitador(report, true)? {
        let (path, body) =
            ("/check_and_report", r#"{"namespace":"http","values":{"user":"KEY"},"delta":1}"#);
        targets.push(("limitador".to_owned(), Target { server, path, body }));
    }
    if let Some(target) = gubernator(report)? {
        targets.push(("gubernator".to_owned(), target));
    }
    Ok(targets)
}

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    let mut targets = targets(report)?;
    let seconds = if effort.divisor == 1 { 3 } else { 1 };
    for (_, target) in &targets {
        // All keys become known.
        load(target, seconds)?;
    }
    let row = Row::measure("HTTP, one check", effort.rounds, &mut targets, |target| {
        measure(target, seconds)
    })?;
    report.rows.push(row);
    Ok(())
}

fn throttlecrab(report: &mut Report) -> Result<Option<Target>> {
    let Some(program) = THROTTLECRAB.find(report) else { return Ok(None) };
    let server = Server::start(|port| {
        let mut command = Command::new(program);
        command.args(["--http", "--http-port", &port.to_string(), "--log-level", "error"]);
        command
    })?;
    let body = r#"{"key":"KEY","max_burst":999999,"count_per_period":1000000,"period":1}"#;
    Ok(Some(Target { server, path: "/throttle", body }))
}

fn gubernator(report: &mut Report) -> Result<Option<Target>> {
    let Some(program) = GUBERNATOR.find(report) else { return Ok(None) };
    let grpc = Port::reserve();
    let server = Server::start(|port| {
        let mut command = Command::new(program);
        let grpc = format!("127.0.0.1:{}", grpc.number());
        command.env("GUBER_HTTP_ADDRESS", format!("127.0.0.1:{port}"));
        command.env("GUBER_GRPC_ADDRESS", &grpc).env("GUBER_ADVERTISE_ADDRESS", &grpc);
        command.env("GUBER_CACHE_SIZE", "1000000").env("GUBER_LOG_LEVEL", "error");
        command
    })?;
    let body = r#"{"requests":[{"name":"api","unique_key":"KEY","hits":1,"limit":1000000,"duration":1000}]}"#;
    Ok(Some(Target { server, path: "/v1/GetRateLimits", body }))
}

pub(crate) fn measure(target: &Target, seconds: u64) -> Result<Sample> {
    target.server.measure(|| load(target, seconds))
}

/// Returns the number of responses, and how many there were per second.
fn load(target: &Target, seconds: u64) -> Result<(u64, u64)> {
    let url = format!("http://127.0.0.1:{}{}", target.server.port.number(), target.path);
    let duration = format!("-d{seconds}s");
    let script = file!("post.lua");
    let wrk = ["wrk", "-t1", "-c50", &duration, "-s", script, &url, "--", target.body];
    let output = process::run_load(&wrk)?;
    ensure!(!output.contains("Non-2xx"), "{url}: {output}");
    let count = output.lines().find_map(|line| line.trim().split_once(" requests in "));
    let count = count.and_then(|(count, _)| count.parse::<u64>().ok());
    let count = count.with_context(|| format!("wrk counts no requests: {output}"))?;
    Ok((count, count / seconds))
}
