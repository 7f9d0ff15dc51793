//! Lines of CSV that ask one check, and replays of them.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use tollgate::Policy;
use tollgate_replay::input::Input;
use tollgate_replay::log::{Fields, Line};
use tollgate_replay::report::Report;
use tollgate_replay::{Alternative, Ask, Asked, Log, NotAsked, One, Options, Replay, verbs};

/// Who is limited is what the log calls the key.
#[derive(Debug)]
pub(crate) struct ByKey;

impl Ask for ByKey {
    fn one(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<One, NotAsked> {
        key.extend_from_slice(line.key.filter(|key| !key.is_empty()).ok_or(NotAsked::NoKey)?);
        Ok(One { policy: 0, cost: verbs::cost(line)? })
    }

    fn any(&self, _: &Line<'_>, _: u64) -> Result<Asked, NotAsked> {
        Err(NotAsked::Nothing)
    }
}

/// A request: when, in microseconds; whose; at what cost.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) at: u64,
    pub(crate) key: String,
    pub(crate) cost: u64,
}

pub(crate) fn csv(requests: &[Request]) -> String {
    let mut text = String::from("time,key,cost\n");
    for Request { at, key, cost } in requests {
        writeln!(text, "{}.{:06},{key},{cost}", at / 1_000_000, at % 1_000_000).unwrap();
    }
    text
}

pub(crate) fn alternatives(limits: &[&str]) -> Vec<Alternative> {
    let one = |text: &&str| Alternative::one(*text, text.parse::<Policy>().unwrap());
    limits.iter().map(one).collect()
}

pub(crate) fn log(text: String) -> Log {
    Log::new(Input::of("log", std::io::Cursor::new(text)), None, Fields::default())
}

pub(crate) fn options(threads: usize) -> Options {
    Options { threads, worst: 10, ..Options::default() }
}

pub(crate) fn replay(alternatives: &[Alternative], options: Options, log: Log) -> Report {
    let stop = AtomicBool::new(false);
    let replay = Replay { alternatives, options, stop: &stop, progress: &mut |_| {} };
    replay.by_key(log, &ByKey).unwrap()
}
