//! Latencies in an open loop at half of the saturation, which a closed loop measures first.

use std::rc::Rc;

use anyhow::{Result, ensure};
use bench::Effort;
use bench::figures::number;
use bench::process::{self, LOAD_CORE};
use bench::report::{Report, Tail};

use crate::open_loop::{self, Client};
use crate::text::{self, Requests};
use crate::{grpc, http, resp};

const KEYS: usize = 100_000;

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    process::pin(std::process::id(), LOAD_CORE)?;
    let seconds = if effort.divisor == 1 { 10 } else { 1 };
    let keys = bench::keys(KEYS);
    let order = bench::uniform(KEYS, KEYS);
    for (server, target) in http::targets(report)? {
        let texts = order.iter().map(|index| target.request(&keys[*index])).collect();
        let requests = Rc::new(Requests { texts, is_complete: text::is_complete_http });
        let port = target.server.port.number();
        measure(report, "HTTP", server, seconds, async || text::connect(port, &requests).await)?;
    }
    let servers = resp::Servers::start(report)?;
    for (server, target, request) in servers.throttle_requests() {
        let texts = order.iter().map(|index| request(&keys[*index])).collect();
        let requests = Rc::new(Requests { texts, is_complete: text::is_complete_resp });
        let port = target.port;
        measure(report, "RESP", server, seconds, async || text::connect(port, &requests).await)?;
    }
    let load = Rc::new(grpc::Load::new(KEYS));
    for (server, (target, statuses)) in grpc::servers(report)? {
        let connect = async || grpc::connect(&target, statuses, &load).await;
        measure(report, "gRPC", server, seconds, connect)?;
    }
    Ok(())
}

fn measure<C: Client>(
    report: &mut Report,
    protocol: &'static str,
    server: String,
    seconds: u64,
    connect: impl AsyncFn() -> Result<Vec<C>>,
) -> Result<()> {
    let saturated = open_loop::run(&connect, seconds, None)?;
    let rate = number(saturated.latencies_us.len()) / seconds / 2;
    ensure!(rate > 0, "{server} answers less than two requests per second");
    let outcome = open_loop::run(&connect, seconds, Some(rate))?;
    let latencies_us = [500, 990, 999].map(|share| outcome.per_mille(share));
    report.tails.push(Tail { protocol, server, rate, latencies_us, unsent: outcome.unsent });
    Ok(())
}
