//! Turns the arguments into a plan.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tollgate::{Limit, Policy, random_id};
use tollgate_load::{
    CheckSpec, Command, Endpoint, Keys, LimitedBy, Load, Plan, Target, token_bucket,
};

use super::address::{self, Address};
use super::arguments::{self, Bench, Requests, RespCommand};

const DEFAULT_LIMIT: &str = "10/s burst 20";
const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// The duration of a run with --iterations, in case the target is slow.
const DEFAULT_DURATION_WITH_ITERATIONS: Duration = Duration::from_secs(3_600);
const DEFAULT_CONNECTIONS: usize = 50;
const DEFAULT_GRPC_STREAMS: usize = 8;
/// In bytes.
const MAX_PREFIX_LEN: usize = 200;
const MAX_IN_PROCESS_THREADS: usize = 256;

pub(super) fn plan(arguments: &Bench) -> Result<Plan> {
    let address = address(arguments)?;
    let target = target(arguments, &address)?;
    let requests = &arguments.requests;
    let limited_by = limited_by(requests, &target)?;
    let verify = match (arguments.verify, &arguments.against) {
        (false, _) => None,
        (true, None) => Some(Vec::new()),
        (true, Some(text)) => Some(parse_limits("--against", text)?),
    };
    let check = CheckSpec { limited_by, cost: requests.cost };
    let load = load(&arguments.load, requests.hold, &target)?;
    Ok(Plan { check, keys: keys(requests)?, load, verify, target })
}

fn address(arguments: &Bench) -> Result<Address> {
    let default = if arguments.requests.threshold.is_some() { "redis" } else { "http" };
    let address = address::parse(arguments.target.as_deref().unwrap_or(default))?;
    let conflicts = [
        (arguments.host.is_some() && address.host.is_some(), "--host"),
        (arguments.port.is_some() && address.port.is_some(), "--port"),
        (arguments.user.is_some() && address.user.is_some(), "--user"),
    ];
    if let Some((_, flag)) = conflicts.iter().find(|(is_conflict, _)| *is_conflict) {
        bail!("{flag} and the target contain the same setting; set it once");
    }
    Ok(address)
}

fn target(arguments: &Bench, address: &Address) -> Result<Target> {
    let password = match address.password.clone().or_else(|| arguments.password.clone()) {
        Some(password) => Some(password),
        None => arguments.token.read()?,
    };
    let endpoint = |port| {
        let host = arguments.host.clone().or_else(|| address.host.clone());
        Endpoint {
            host: host.unwrap_or_else(|| DEFAULT_HOST.to_owned()),
            port: arguments.port.or(address.port).unwrap_or(port),
            user: arguments.user.clone().or_else(|| address.user.clone()),
            password: password.clone(),
        }
    };
    let command = match (arguments.requests.threshold, arguments.requests.command) {
        (Some(threshold), _) => Command::Counter { threshold },
        (None, RespCommand::Check) => Command::Check,
        (None, RespCommand::Throttle) => Command::Throttle,
    };
    let target = match (&*address.scheme, command) {
        ("redis", Command::Counter { .. }) => Target::Resp(endpoint(6379), command),
        ("redis", _) => Target::Resp(endpoint(6380), command),
        (_, Command::Counter { threshold }) => {
            bail!("--threshold {threshold} needs a target redis://HOST:PORT")
        }
        (_, Command::Throttle) => {
            bail!("--command throttle needs a target redis://HOST:PORT")
        }
        ("grpc", _) => Target::Grpc(endpoint(8081)),
        ("memory", _) => Target::Memory,
        _ => Target::Http(endpoint(8080)),
    };
    if let Some(Endpoint { user, password, .. }) = target.endpoint() {
        for text in [user, password].into_iter().flatten() {
            if text.contains(|c: char| c.is_control()) {
                bail!("the user or the password contains a control character");
            }
        }
    }
    Ok(target)
}

fn limited_by(requests: &Requests, target: &Target) -> Result<LimitedBy> {
    if let Target::Resp(_, Command::Counter { threshold }) = target {
        if requests.cost != 1 {
            bail!("INCR does not support --cost {}; omit it", requests.cost);
        }
        return Ok(LimitedBy::Limits(format!("{threshold}/min fixed")));
    }
    if let Some(name) = &requests.policy {
        if !Policy::is_name(name) {
            bail!(
                "--policy {name:?} is not the name of a policy, which begins with a letter; use \
                 --limit for limits"
            );
        }
        if matches!(target, Target::Resp(_, Command::Throttle) | Target::Memory) {
            bail!("--policy {name:?} needs a daemon; use --limit instead");
        }
        return Ok(LimitedBy::Policy(name.clone()));
    }
    if matches!(target, Target::Grpc(_)) {
        bail!("a gRPC target needs --policy, whose name is the domain");
    }
    let text = requests.limit.as_deref().unwrap_or(DEFAULT_LIMIT);
    parse_limits("--limit", text)?;
    if matches!(target, Target::Resp(_, Command::Throttle)) && token_bucket(text).is_none() {
        bail!(
            "CL.THROTTLE cannot express --limit {text:?}; use one token bucket of whole seconds, \
             such as {DEFAULT_LIMIT:?}"
        );
    }
    Ok(LimitedBy::Limits(text.to_owned()))
}

fn parse_limits(flag: &str, text: &str) -> Result<Vec<Limit>> {
    let policy: Policy = text.parse().with_context(|| format!("{flag} {text:?}"))?;
    Ok(policy.limits().to_vec())
}

fn keys(requests: &Requests) -> Result<Keys> {
    let prefix = match &requests.key_prefix {
        Some(prefix) if prefix.len() > MAX_PREFIX_LEN => {
            bail!("--key-prefix has {} bytes; at most {MAX_PREFIX_LEN}", prefix.len())
        }
        Some(prefix) => prefix.clone(),
        None => format!("bench-{:.8}-", random_id().to_string()),
    };
    Ok(Keys { prefix, count: requests.keys, zipf: requests.zipf, seed: requests.seed })
}

#[expect(clippy::expect_used, reason = "supported targets have at least 32-bit addresses")]
fn load(arguments: &arguments::Load, hold: Duration, target: &Target) -> Result<Load> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let number = |n: u32| usize::try_from(n).expect("32 bits fit a usize");
    let is_in_process = *target == Target::Memory;
    let default = if is_in_process { cores } else { DEFAULT_CONNECTIONS };
    let connections = arguments.concurrency.map_or(default, number);
    if is_in_process && connections > MAX_IN_PROCESS_THREADS {
        bail!(
            "--concurrency {connections} needs a thread each in process; at most \
             {MAX_IN_PROCESS_THREADS}"
        );
    }
    let threads = match arguments.threads {
        _ if is_in_process => connections,
        Some(threads) => number(threads),
        None => (cores / 2).max(1),
    };
    let pipeline = match (target, arguments.pipeline) {
        (Target::Http(_) | Target::Memory, Some(depth)) if depth > 1 => bail!(
            "--pipeline {depth} needs a target redis:// or grpc://; raise --concurrency instead"
        ),
        (Target::Grpc(_), None) => DEFAULT_GRPC_STREAMS,
        (_, depth) => depth.map_or(1, number),
    };
    let duration = match arguments.iterations {
        Some(_) => DEFAULT_DURATION_WITH_ITERATIONS,
        None => DEFAULT_DURATION,
    };
    Ok(Load {
        connections,
        pipeline,
        threads,
        rate: arguments.rate,
        iterations: arguments.iterations,
        duration: arguments.duration.unwrap_or(duration),
        timeout: arguments.timeout,
        hold: Some(hold),
    })
}
