//! What it costs that a policy tracks everything about its keys: totals, a timeline and notes.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use bench::Effort;
use bench::process::{self, LOAD_CORE, SERVER_CORE};
use bench::report::{Report, Row};
use tollgate_testkit::Server as Redis;

use crate::resp::load::Target;
use crate::servers::{self, Server};

const KEY: &str = "user:__rand_int__";
/// Two policies that differ only in `track`: names of the same length make Redis keys of the same length.
const TRACKED: &str = "tracked";
const NOT_TRACKED: &str = "regular";

/// A daemon, and the Redis server that has its state.
struct Pair {
    daemon: Server,
    redis: Option<Redis>,
    policy: &'static str,
}

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    let stores = [
        ("memory", None),
        ("Redis on the load's core", Some(LOAD_CORE)),
        ("Redis on the daemon's core", Some(SERVER_CORE)),
    ];
    for (store, redis_core) in stores {
        let mut systems = [
            ("tollgate, tracked".to_owned(), Pair::start(TRACKED, redis_core)?),
            ("tollgate, not tracked".to_owned(), Pair::start(NOT_TRACKED, redis_core)?),
        ];
        for pipeline in [16, 1] {
            let divisor = effort.divisor * if redis_core.is_some() { 4 } else { 1 };
            let requests = if pipeline == 1 { 200_000 } else { 2_000_000 } / divisor;
            for (_, pair) in &systems {
                // All keys become known.
                pair.target().load(pipeline, &pair.command(), requests)?;
            }
            let name = |process| format!("track, {store}, pipeline {pipeline}, CPU of {process}");
            let row = Row::measure(name("the daemon"), effort.rounds, &mut systems, |pair| {
                pair.target().measure(pipeline, &pair.command(), requests)
            })?;
            report.rows.push(row);
            if redis_core.is_some() {
                let row = Row::measure(name("Redis"), effort.rounds, &mut systems, |pair| {
                    let id = pair.redis.as_ref().map(Redis::pid).context("no Redis")?;
                    let load = || pair.target().load(pipeline, &pair.command(), requests);
                    servers::measure(id, load)
                })?;
                report.rows.push(row);
            }
        }
        systems[0].1.check_dropped()?;
    }
    Ok(())
}

impl Pair {
    /// With `redis_core`, the store is a Redis server on that core.
    fn start(policy: &'static str, redis_core: Option<&str>) -> Result<Self> {
        let redis = redis_core.map(|_| Redis::start());
        if let (Some(redis), Some(core)) = (&redis, redis_core) {
            process::pin(redis.pid(), core)?;
        }
        let daemon = Server::tollgate("--resp", redis.as_ref().map(Redis::url).as_deref())?;
        Ok(Pair { daemon, redis, policy })
    }

    fn target(&self) -> Target {
        Target { port: self.daemon.port.number(), id: self.daemon.process.id() }
    }

    fn command(&self) -> [&'static str; 3] {
        ["TOLLGATE.CHECK", self.policy, KEY]
    }

    /// Fails if decisions were not recorded, because those cost little.
    fn check_dropped(&mut self) -> Result<()> {
        let line = self.daemon.process.line_with("/metrics")?;
        let address = line.trim().trim_end_matches("/metrics").rsplit_once('/');
        let (_, address) = address.with_context(|| format!("no address of metrics: {line}"))?;
        let mut connection = TcpStream::connect(address)?;
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut metrics = String::new();
        connection.read_to_string(&mut metrics)?;
        let dropped = metrics.lines().filter(|line| line.starts_with("tollgate_tracked_dropped"));
        let dropped: Vec<_> = dropped.collect();
        ensure!(
            !dropped.is_empty() && dropped.iter().all(|line| line.ends_with(" 0")),
            "decisions were not recorded: {dropped:?}"
        );
        Ok(())
    }
}
