//! What was typed, as a plan.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tollgate::{Limit, Policy, random_id};
use tollgate_load::{
    Command, Keys, LimitedBy, Load, MAX_ADMISSIONS, Peer, Plan, Question, Target, bucket,
};

use super::address::{self, Written};
use super::arguments::{Bench, Words};

const LIMIT: &str = "10/s burst 20";
const HOST: &str = "127.0.0.1";
const DURATION: Duration = Duration::from_secs(10);
/// Where the number of requests ends it, and they do not come to an end.
const MAX_DURATION: Duration = Duration::from_secs(3_600);
const CONNECTIONS: usize = 50;
const STREAMS: usize = 8;
/// The most bytes of a prefix.
const MAX_PREFIX: usize = 200;

pub(super) fn plan(it: &Bench) -> Result<Plan> {
    let written = written(it)?;
    let target = target(it, &written)?;
    let question = Question { limited_by: limited_by(it, &target)?, cost: it.cost };
    let against = it.verify.then(|| against(it)).transpose()?;
    let load = load(it, &target)?;
    Ok(Plan { question, keys: keys(it)?, load, against, target })
}

fn written(it: &Bench) -> Result<Written> {
    let usual = if it.threshold.is_some() { "redis" } else { "http" };
    let written = address::read(it.target.as_deref().unwrap_or(usual))?;
    let twice = [
        (it.host.is_some() && written.host.is_some(), "--host"),
        (it.port.is_some() && written.port.is_some(), "--port"),
        (it.user.is_some() && written.user.is_some(), "--user"),
    ];
    if let Some((_, flag)) = twice.iter().find(|twice| twice.0) {
        bail!("{flag} and the target both say it; write it once");
    }
    Ok(written)
}

fn target(it: &Bench, written: &Written) -> Result<Target> {
    let peer = |port| {
        let host = it.host.clone().or_else(|| written.host.clone());
        Peer {
            host: host.unwrap_or_else(|| HOST.to_owned()),
            port: it.port.or(written.port).unwrap_or(port),
            user: it.user.clone().or_else(|| written.user.clone()),
            password: written.password.clone().or_else(|| it.password.clone()),
        }
    };
    let command = match (it.threshold, it.command) {
        (Some(threshold), _) => Command::Counter { threshold },
        (None, Words::Check) => Command::Check,
        (None, Words::Throttle) => Command::Throttle,
    };
    let target = match (&*written.scheme, command) {
        ("redis", Command::Counter { .. }) => Target::Resp(peer(6379), command),
        ("redis", _) => Target::Resp(peer(6380), command),
        (_, Command::Counter { threshold }) => {
            bail!("--threshold {threshold} counts in a Redis; the target is redis://HOST:PORT then")
        }
        (_, Command::Throttle) => {
            bail!("--command throttle is of redis://; leave it out, or name such a target")
        }
        ("grpc", _) => Target::Grpc(peer(8081)),
        ("memory", _) => Target::Memory,
        _ => Target::Http(peer(8080)),
    };
    let login = target.peer().map(|peer| [&peer.user, &peer.password]);
    for part in login.iter().flatten().filter_map(|login| login.as_deref()) {
        if part.contains(|c: char| c.is_control()) {
            bail!("the user or the password holds a control character; write it in plain text");
        }
    }
    Ok(target)
}

fn limited_by(it: &Bench, target: &Target) -> Result<LimitedBy> {
    if let Target::Resp(_, Command::Counter { threshold }) = target {
        if it.cost != 1 {
            bail!("--cost {} is not counted by INCR; leave it out", it.cost);
        }
        return Ok(LimitedBy::Limits(format!("{threshold}/min fixed")));
    }
    if let Some(name) = &it.policy {
        if !Policy::is_name(name) {
            bail!(
                "--policy {name:?} is no policy's name, which begins with a letter; limits are \
                 written with --limit"
            );
        }
        if matches!(target, Target::Resp(_, Command::Throttle) | Target::Memory) {
            bail!("--policy {name:?} is of a daemon; write the limit with --limit");
        }
        return Ok(LimitedBy::Policy(name.clone()));
    }
    if matches!(target, Target::Grpc(_)) {
        bail!("over grpc:// the domain is a policy's name; name one with --policy");
    }
    let text = it.limit.as_deref().unwrap_or(LIMIT);
    limits("--limit", text)?;
    if matches!(target, Target::Resp(_, Command::Throttle)) && bucket(text).is_none() {
        bail!(
            "--limit {text:?} is nothing that CL.THROTTLE can say; write one token bucket of whole \
             seconds, such as {LIMIT:?}"
        );
    }
    Ok(LimitedBy::Limits(text.to_owned()))
}

fn limits(flag: &str, text: &str) -> Result<Vec<Limit>> {
    let policy: Policy = text.parse().with_context(|| format!("{flag} {text:?}"))?;
    Ok(policy.limits().to_vec())
}

/// None but those that are asked for, unless it says others.
fn against(it: &Bench) -> Result<Vec<Limit>> {
    it.against.as_deref().map_or_else(|| Ok(Vec::new()), |text| limits("--against", text))
}

fn keys(it: &Bench) -> Result<Keys> {
    let prefix = match &it.key_prefix {
        Some(prefix) if prefix.len() > MAX_PREFIX => {
            bail!("--key-prefix has {} bytes; at most {MAX_PREFIX}", prefix.len())
        }
        Some(prefix) => prefix.clone(),
        None => format!("bench-{:.8}-", random_id().to_string()),
    };
    Ok(Keys { prefix, count: it.keys, zipf: it.zipf, seed: it.seed })
}

fn load(it: &Bench, target: &Target) -> Result<Load> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let in_process = *target == Target::Memory;
    let usual = if in_process { cores } else { CONNECTIONS };
    let connections = it.concurrency.map_or(usual, number);
    let threads = if in_process { connections } else { (cores / 2).max(1) };
    let pipeline = match (target, it.pipeline) {
        (Target::Http(_) | Target::Memory, Some(more)) if more > 1 => bail!(
            "--pipeline {more} is for redis:// and grpc://; raise --concurrency to have more under \
             way"
        ),
        (Target::Grpc(_), None) => STREAMS,
        (_, asked) => asked.map_or(1, number),
    };
    if in_process && connections > 256 {
        return Err(anyhow!(
            "--concurrency {connections} is a thread each in process; at most 256"
        ));
    }
    let usual = if it.iterations.is_some() { MAX_DURATION } else { DURATION };
    Ok(Load {
        connections,
        pipeline,
        threads: if in_process { threads } else { it.threads.map_or(threads, number) },
        rate: it.rate,
        iterations: it.iterations,
        duration: it.duration.unwrap_or(usual),
        timeout: it.timeout,
        hold: Some(it.hold),
    })
}

/// What `--verify` holds of admissions at most, for whoever wonders at one that it did not.
pub(super) const MAX_HELD: usize = MAX_ADMISSIONS;
