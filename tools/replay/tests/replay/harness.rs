//! CSV logs and their replay.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tollgate::Policy;
use tollgate_replay::input::Input;
use tollgate_replay::log::{Fields, Line};
use tollgate_replay::report::Report;
use tollgate_replay::{
    Candidate, Log, LogRequest, Options, PlainCheck, Replay, ReplayError, RequestExtractor, Skip,
    operations,
};

/// The key is the field `key` of the log.
#[derive(Debug)]
pub(crate) struct KeyField;

impl RequestExtractor for KeyField {
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip> {
        key.extend_from_slice(line.key.filter(|key| !key.is_empty()).ok_or(Skip::NoKey)?);
        Ok(PlainCheck { policy: 0, cost: operations::cost(line)? })
    }

    fn request(&self, _: &Line<'_>, _: u64) -> Result<LogRequest, Skip> {
        Err(Skip::NoRule)
    }
}

/// A request: its time in microseconds, its key and its cost.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) at: u64,
    pub(crate) key: String,
    pub(crate) cost: u64,
}

impl Request {
    /// A request of cost 1.
    pub(crate) fn new(at: u64, key: impl Into<String>) -> Self {
        Request { at, key: key.into(), cost: 1 }
    }
}

pub(crate) fn csv(requests: &[Request]) -> String {
    let mut text = String::from("time,key,cost\n");
    for Request { at, key, cost } in requests {
        writeln!(text, "{}.{:06},{key},{cost}", at / 1_000_000, at % 1_000_000).unwrap();
    }
    text
}

pub(crate) fn candidates(limits: &[&str]) -> Vec<Candidate> {
    let candidate = |text: &&str| Candidate::new(*text, text.parse::<Policy>().unwrap());
    limits.iter().map(candidate).collect()
}

pub(crate) fn log(text: String) -> Log {
    Log::new(Input::from_reader("log", std::io::Cursor::new(text)), None, Fields::default())
}

/// A log in many files, which are read in several rounds. The folder is that of one test.
pub(crate) fn log_in_files(requests: &[Request], folder: &str) -> Log {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&folder).unwrap();
    let files = requests.chunks(requests.len().div_ceil(30).max(1)).enumerate();
    let write = |(number, requests): (usize, &[Request])| {
        let file = folder.join(format!("{number}.csv"));
        fs::write(&file, csv(requests)).unwrap();
        file
    };
    Log::new(Input::open(files.map(write).collect::<Vec<_>>()), None, Fields::default())
}

pub(crate) fn options(threads: usize) -> Options {
    Options { threads, worst: 10, ..Options::default() }
}

/// Calls `run` with a replay that nothing stops.
pub(crate) fn with_replay<T>(
    candidates: &[Candidate],
    options: Options,
    run: impl FnOnce(Replay<'_>) -> Result<T, ReplayError>,
) -> Result<T, ReplayError> {
    let stop = AtomicBool::new(false);
    run(Replay { candidates, options, stop: &stop, progress: &mut |_| {} })
}

pub(crate) fn replay(candidates: &[Candidate], options: Options, log: Log) -> Report {
    with_replay(candidates, options, |replay| replay.parallel(log, &KeyField)).unwrap()
}
