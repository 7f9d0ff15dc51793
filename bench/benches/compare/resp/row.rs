//! The commands that are measured.

/// The keys of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    /// One of [`KEYS`] at random.
    Random,
    /// A single key.
    Hot,
}

/// The number of random keys.
pub(crate) const KEYS: &str = "100000";

impl Keys {
    /// The number of keys, in words.
    pub(crate) fn count(self) -> &'static str {
        match self {
            Keys::Random => "100,000 keys",
            Keys::Hot => "1 key",
        }
    }

    /// The key as an argument of `redis-benchmark`.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Keys::Random => "user:__rand_int__",
            Keys::Hot => "user:000000000042",
        }
    }
}

/// A command that is compared with `INCR` of the same keys.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<&'static str>,
    pub(crate) keys: Keys,
    pub(crate) pipeline: usize,
}

/// A burst and a rate that the load cannot exhaust, so that each request is admitted and charged.
pub(crate) const HIGH_LIMIT: [&str; 3] = ["999999", "1000000", "1"];
/// A limit that the first two requests exhaust, so that all others are denied. throttlecrab rejects a
/// burst of 0.
const LOW_LIMIT: [&str; 3] = ["1", "1", "86400"];

pub(crate) fn throttle(keys: Keys, limit: [&'static str; 3]) -> Vec<&'static str> {
    [&["CL.THROTTLE", keys.argument()][..], &limit].concat()
}

pub(crate) fn rows() -> Vec<Row> {
    let check = vec!["TOLLGATE.CHECK", "api", Keys::Random.argument()];
    let commands = [
        ("`CL.THROTTLE`", Keys::Random, throttle(Keys::Random, HIGH_LIMIT)),
        ("`CL.THROTTLE`", Keys::Hot, throttle(Keys::Hot, HIGH_LIMIT)),
        ("`CL.THROTTLE`, denied", Keys::Hot, throttle(Keys::Hot, LOW_LIMIT)),
        ("`TOLLGATE.CHECK`", Keys::Random, check),
    ];
    let mut rows = Vec::new();
    for pipeline in [32, 1] {
        for (name, keys, command) in commands.clone() {
            rows.push(Row { name, command, keys, pipeline });
        }
    }
    rows
}
