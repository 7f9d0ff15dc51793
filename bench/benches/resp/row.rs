//! What is measured, a row for each.

/// Which keys are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    /// One of so many, at random.
    Random,
    /// One.
    Hot,
}

/// How many random keys there are.
pub(crate) const KEYS: &str = "100000";

impl Keys {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Keys::Random => "100,000",
            Keys::Hot => "1",
        }
    }

    /// As `redis-benchmark` writes it.
    fn key(self) -> &'static str {
        match self {
            Keys::Random => "user:__rand_int__",
            Keys::Hot => "user:000000000042",
        }
    }

    /// What Redis is asked.
    pub(crate) fn increment(self) -> &'static [&'static str] {
        match self {
            Keys::Random => &["INCR", "user:__rand_int__"],
            Keys::Hot => &["INCR", "user:000000000042"],
        }
    }
}

/// A command beside `INCR`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<&'static str>,
    pub(crate) keys: Keys,
    pub(crate) pipeline: u64,
    pub(crate) asks: u64,
}

/// A burst and a rate that no load here exhausts, so that each request is admitted and charged.
const AMPLE: [&str; 3] = ["999999", "1000000", "1"];
/// One that the first request exhausts, so that all others are denied.
const SCANT: [&str; 3] = ["0", "1", "86400"];

pub(crate) fn rows() -> Vec<Row> {
    let throttle = |name, keys, limit| {
        let command = [&["CL.THROTTLE", Keys::key(keys)][..], limit].concat();
        move |pipeline| Row { name, command: command.clone(), keys, pipeline, asks: asks(pipeline) }
    };
    let check = |keys| {
        let command = vec!["TOLLGATE.CHECK", "api", Keys::key(keys)];
        move |pipeline| Row {
            name: "`TOLLGATE.CHECK`",
            command: command.clone(),
            keys,
            pipeline,
            asks: asks(pipeline),
        }
    };
    let mut rows = Vec::new();
    for pipeline in [32, 1] {
        rows.push(throttle("`CL.THROTTLE`", Keys::Random, &AMPLE)(pipeline));
        rows.push(throttle("`CL.THROTTLE`", Keys::Hot, &AMPLE)(pipeline));
        rows.push(throttle("`CL.THROTTLE`, denied", Keys::Hot, &SCANT)(pipeline));
        rows.push(check(Keys::Random)(pipeline));
    }
    rows
}

/// About a second's work.
fn asks(pipeline: u64) -> u64 {
    if pipeline == 1 { 100_000 } else { 1_500_000 }
}
