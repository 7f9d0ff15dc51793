//! Checks of one busy key that are decided on quota which was charged to Redis in advance, beside the
//! memory store.

use anyhow::Result;
use bench::Effort;
use bench::process::{self, SERVER_CORE};
use bench::report::{Report, Row};
use tollgate_testkit::Server as Redis;

use crate::http::{self, Target};
use crate::resp;
use crate::servers::Server;

const COMMAND: [&str; 3] = ["TOLLGATE.CHECK", "busy", "user:42"];
const BODY: &str = r#"{"policy":"busy","key":"user:42"}"#;

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    let redis = Redis::start();
    process::pin(redis.pid(), SERVER_CORE)?;
    let start = |listener| -> Result<_> {
        Ok([
            ("tollgate, leased".to_owned(), Server::tollgate(listener, Some(&redis.url()))?),
            ("tollgate, memory".to_owned(), Server::tollgate(listener, None)?),
        ])
    };
    let mut systems = start("--resp")?;
    for pipeline in [32, 1] {
        let requests = if pipeline == 1 { 200_000 } else { 4_000_000 } / effort.divisor;
        let name = format!("one busy key, RESP, pipeline {pipeline}");
        let row = Row::measure(name, effort.rounds, &mut systems, |server| {
            let target = resp::load::Target { port: server.port.number(), id: server.process.id() };
            target.measure(pipeline, &COMMAND, requests)
        })?;
        report.rows.push(row);
    }
    let seconds = if effort.divisor == 1 { 3 } else { 1 };
    let mut systems = start("--http")?
        .map(|(name, server)| (name, Target { server, path: "/v1/check", body: BODY }));
    let row = Row::measure("one busy key, HTTP", effort.rounds, &mut systems, |target| {
        http::measure(target, seconds)
    })?;
    report.rows.push(row);
    Ok(())
}
