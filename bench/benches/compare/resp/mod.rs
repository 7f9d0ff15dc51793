//! The Redis protocol: `redis-benchmark` with 50 connections. A rate limiter on Redis takes at least
//! one `INCR` per request.

pub(crate) mod load;
mod row;

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use bench::Effort;
use bench::figures::number;
use bench::process::{self, SERVER_CORE};
use bench::report::{Curve, Report, Row as ReportRow};
use tollgate_testkit::{Server as Redis, encode};

use self::load::Target;
use self::row::{HIGH_LIMIT, Keys, Row, rows, throttle};
use crate::peers::{REDIS_CELL, THROTTLECRAB};
use crate::servers::Server;

/// Redis with the module redis-cell.
fn redis_cell(module: &Path) -> Redis {
    Redis::with(|config| config.line(&format!("loadmodule {}", module.display())))
}

/// A system, where it listens, and its request for a key.
pub(crate) type Throttle = (String, Target, Box<dyn Fn(&str) -> Vec<u8>>);

/// The servers that are measured.
pub(crate) struct Servers {
    tollgate: Server,
    redis: Redis,
    /// Redis with the module redis-cell.
    cell: Option<Redis>,
    throttlecrab: Option<Server>,
}

impl Servers {
    pub(crate) fn start(report: &mut Report) -> Result<Self> {
        let cell = REDIS_CELL.find(report).map(|module| redis_cell(&module));
        let throttlecrab = THROTTLECRAB.find(report).map(|program| {
            Server::start(|port| {
                let mut command = Command::new(program);
                command.args(["--redis", "--redis-port", &port.to_string()]);
                command.args(["--log-level", "error"]);
                command
            })
        });
        let servers = Servers {
            tollgate: Server::tollgate("--resp", None)?,
            redis: Redis::start(),
            cell,
            throttlecrab: throttlecrab.transpose()?,
        };
        for redis in servers.cell.iter().chain([&servers.redis]) {
            process::pin(redis.pid(), SERVER_CORE)?;
        }
        Ok(servers)
    }

    /// The systems of a row, with their commands.
    fn systems(&self, row: &Row) -> Vec<(String, (Target, Vec<&'static str>))> {
        let key = row.keys.argument();
        let of = |redis: &Redis| Target { port: redis.port(), id: redis.pid() };
        let own = |server: &Server| Target { port: server.port.number(), id: server.process.id() };
        let mut systems = vec![
            ("tollgate".to_owned(), (own(&self.tollgate), row.command.clone())),
            ("Redis, INCR".to_owned(), (of(&self.redis), vec!["INCR", key])),
        ];
        if row.command[0] == "CL.THROTTLE" {
            if let Some(cell) = &self.cell {
                systems.push(("redis-cell".to_owned(), (of(cell), row.command.clone())));
            }
            if let Some(throttlecrab) = &self.throttlecrab {
                let mut command = row.command.clone();
                command[0] = "THROTTLE";
                systems.push(("throttlecrab".to_owned(), (own(throttlecrab), command)));
            }
        } else {
            let target = (own(&self.tollgate), throttle(row.keys, HIGH_LIMIT));
            systems.push(("tollgate, CL.THROTTLE".to_owned(), target));
        }
        systems
    }

    /// The systems with `CL.THROTTLE`, and Redis with `INCR`.
    pub(crate) fn throttle_requests(&self) -> Vec<Throttle> {
        let keys = Keys::Random;
        let command = throttle(keys, HIGH_LIMIT);
        let row = Row { name: "`CL.THROTTLE`", command, keys, pipeline: 1 };
        let systems = self.systems(&row).into_iter();
        let requests = systems.map(|(system, (target, words))| -> Throttle {
            let request = move |key: &str| {
                let with_key =
                    |word: &&'static str| if *word == keys.argument() { key } else { word };
                encode(&words.iter().map(with_key).collect::<Vec<_>>())
            };
            (system, target, Box::new(request))
        });
        requests.collect()
    }
}

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    let servers = Servers::start(report)?;
    for row in rows() {
        report.rows.push(measure(&servers, &row, effort)?);
    }
    Ok(())
}

/// Measures `TOLLGATE.CHECK`, `CL.THROTTLE` and `INCR` with longer and longer pipelines.
pub(crate) fn grow(effort: Effort, report: &mut Report) -> Result<()> {
    let servers = Servers::start(report)?;
    let (name, title) = ("pipeline", "Longer pipelines of `TOLLGATE.CHECK`");
    let mut curve = Curve { name, title, unit: "commands in a pipeline", points: Vec::new() };
    for pipeline in [1, 4, 16, 64, 256] {
        let (name, keys) = ("`TOLLGATE.CHECK`", Keys::Random);
        let command = vec!["TOLLGATE.CHECK", "api", keys.argument()];
        let row = Row { name, command, keys, pipeline };
        curve.points.push((number(pipeline), measure(&servers, &row, effort)?));
    }
    report.growth.push(curve);
    Ok(())
}

fn measure(servers: &Servers, row: &Row, effort: Effort) -> Result<ReportRow> {
    let systems = servers.systems(row);
    let name = format!("{}, {}, pipeline {}", row.name, row.keys.count(), row.pipeline);
    let mut loads = Vec::with_capacity(systems.len());
    for (system, (target, command)) in systems {
        // Nearly all keys become known.
        let (_, rate) = target.load(row.pipeline, &command, WARM_UP / effort.divisor)?;
        // About a second: some systems take forty times as long as others.
        let requests = usize::try_from(rate)? / effort.divisor;
        loads.push((system, (target, command, requests)));
    }
    ReportRow::measure(name, effort.rounds, &mut loads, |(target, command, requests)| {
        target.measure(row.pipeline, command, *requests)
    })
}

/// The requests before a row is measured.
const WARM_UP: usize = 300_000;
