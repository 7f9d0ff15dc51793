//! Envoy's rate limit service: ten connections with 20 requests in flight on each.

mod load;

use std::process::Command;
use std::rc::Rc;

use anyhow::Result;
use bench::Effort;
use bench::figures::number;
use bench::process::{self, LOAD_CORE, SERVER_CORE};
use bench::report::{Report, Row};
use tollgate_testkit::{Folder, Port, Server as Redis};

pub(crate) use self::load::{Load, connect};
use crate::peers::RATELIMIT;
use crate::servers::{Server, constant, file};

const REQUESTS: u64 = 150_000;

/// Starts Tollgate and its peers in memory, each with the number of statuses in its responses.
pub(crate) fn servers(report: &mut Report) -> Result<Vec<(String, (Server, usize))>> {
    let mut servers = vec![("tollgate".to_owned(), (Server::tollgate("--grpc", None)?, 1))];
    if let Some(server) = Server::limitador(report, false)? {
        // It returns no statuses.
        servers.push(("limitador".to_owned(), (server, 0)));
    }
    let constant = constant()?;
    servers.push(("tonic, a constant".to_owned(), (Server::start(constant)?, 1)));
    Ok(servers)
}

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    process::pin(std::process::id(), LOAD_CORE)?;
    let load = Rc::new(Load::new(100_000));
    let mut servers = servers(report)?;
    measure("gRPC, one descriptor", effort, report, &load, &mut servers)?;

    let (redis, other) = (Redis::start(), Redis::start());
    for redis in [&redis, &other] {
        process::pin(redis.pid(), SERVER_CORE)?;
    }
    let tollgate = Server::tollgate("--grpc", Some(&redis.url()))?;
    let mut servers = vec![("tollgate".to_owned(), (tollgate, 1))];
    let folder = Folder::create();
    if let Some(server) = ratelimit(report, &folder, &other)? {
        servers.push(("envoyproxy/ratelimit".to_owned(), (server, 1)));
    }
    measure("gRPC, one descriptor, on Redis", effort, report, &load, &mut servers)
}

/// Measures servers, each with the number of statuses in its responses.
fn measure(
    name: &str,
    effort: Effort,
    report: &mut Report,
    load: &Rc<Load>,
    servers: &mut [(String, (Server, usize))],
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let requests = REQUESTS / number(effort.divisor);
    for (_, (server, statuses)) in servers.iter() {
        // All keys become known.
        runtime.block_on(load::run(server, *statuses, load, requests))?;
    }
    let row = Row::measure(name, effort.rounds, servers, |(server, statuses)| {
        server.measure(|| runtime.block_on(load::run(server, *statuses, load, requests)))
    })?;
    report.rows.push(row);
    Ok(())
}

/// Starts envoyproxy/ratelimit on a Redis server.
fn ratelimit(report: &mut Report, folder: &Folder, redis: &Redis) -> Result<Option<Server>> {
    let Some(program) = RATELIMIT.find(report) else { return Ok(None) };
    std::fs::create_dir_all(folder.path().join("config"))?;
    std::fs::copy(file!("ratelimit.yaml"), folder.path().join("config/api.yaml"))?;
    let others = [(); 3].map(|()| Port::reserve());
    let mut server = Server::start(|port| {
        let mut command = Command::new(program);
        command.env("RUNTIME_ROOT", folder.path()).env("REDIS_URL", redis.address());
        command.env("GRPC_PORT", port.to_string());
        for (name, port) in ["PORT", "DEBUG_PORT"].iter().zip(&others) {
            command.env(name, port.number().to_string());
        }
        command.env("PROMETHEUS_ADDR", format!("127.0.0.1:{}", others[2].number()));
        command.envs([
            ("HOST", "127.0.0.1"),
            ("GRPC_HOST", "127.0.0.1"),
            ("DEBUG_HOST", "127.0.0.1"),
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("RUNTIME_WATCH_ROOT", "false"),
            ("LOG_LEVEL", "error"),
            ("USE_STATSD", "false"),
            ("USE_PROMETHEUS", "true"),
        ]);
        command
    })?;
    server.keep(others);
    Ok(Some(server))
}
