//! The rows of the table: limits or scripts, and the state of their keys.

use tollgate_algorithms::{NotationError, Policy};

use crate::redis::scripts::{self, Script};

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) decider: Decider,
    pub(crate) keys: Vec<String>,
    pub(crate) fill: Fill,
}

/// Makes the decisions of a row.
#[derive(Clone, Debug)]
pub(crate) enum Decider {
    /// One policy for each check of a request, and whether they admit it.
    Policies {
        policies: Vec<Policy>,
        admits: bool,
    },
    Script(Script),
}

/// The entries that each key has before anything is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fill {
    pub(crate) entries: u64,
    pub(crate) cost: u32,
    /// The time between two entries.
    pub(crate) interval_us: u64,
}

impl Row {
    /// Whether a request acquires and releases a lease, which are two decisions.
    pub(crate) fn has_leases(&self) -> bool {
        match &self.decider {
            Decider::Policies { policies, .. } => policies.iter().any(Policy::has_concurrent),
            Decider::Script(_) => false,
        }
    }

    /// The decisions of a request.
    pub(crate) fn decisions(&self) -> usize {
        if self.has_leases() { 2 } else { 1 }
    }

    pub(crate) fn key(&self, number: usize) -> &str {
        &self.keys[number % self.keys.len()]
    }

    /// A row of a policy named `api` for each check.
    #[expect(clippy::expect_used, reason = "the limits are already those of a policy")]
    pub(crate) fn limits(name: &str, limits: &[&str]) -> Result<Self, NotationError> {
        let named = |text: &&str| {
            let unnamed: Policy = text.parse()?;
            Ok(Policy::new("api", unnamed.limits().iter().copied()).expect("valid limits"))
        };
        let policies = limits.iter().map(named).collect::<Result<_, NotationError>>()?;
        Ok(Row::new(name, Decider::Policies { policies, admits: true }))
    }

    pub(crate) fn script(name: &str, script: Script) -> Self {
        Row::new(name, Decider::Script(script))
    }

    fn new(name: &str, decider: Decider) -> Self {
        Row { name: name.to_owned(), decider, keys: keys(0, KEYS), fill: Fill::default() }
    }

    fn denied(mut self) -> Self {
        if let Decider::Policies { admits, .. } = &mut self.decider {
            *admits = false;
        }
        self
    }

    fn filled(mut self, count: usize, entries: u64, cost: u32, interval_us: u64) -> Self {
        self.keys = keys(0, count);
        self.fill = Fill { entries, cost, interval_us };
        self
    }
}

/// The number of keys of a row whose state has a constant size. Few keys would often meet in a batch, and
/// fit the cache of a processor.
const KEYS: usize = 100_000;

/// 24-byte keys that no other row has.
fn keys(row: usize, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("user:{:019}", row * 1_000_000 + n)).collect()
}

pub(crate) const HASH: &str = "*hash*";
pub(crate) const TOKEN_BUCKET: &str = "token bucket";
pub(crate) const THREE_LIMITS: &str = "three limits";

/// The nominal length of a log, its length at the start, the number of keys, and the script of a
/// list. There are enough keys that the measured requests hardly lengthen a log, and never to its
/// maximum of 10,000 entries.
const LOGS: [(&str, u64, usize, Script); 4] = [
    ("10", 10, 8_192, scripts::list(&["1", "10"])),
    ("100", 100, 2_048, scripts::list(&["1", "100"])),
    ("1,000", 1_000, 256, scripts::list(&["1", "1000"])),
    ("10,000", 9_600, 64, scripts::list(&["1", "9600"])),
];

/// All rows, the usual scripts in italics; the hash is the first.
pub(crate) fn all() -> Result<Vec<Row>, NotationError> {
    let limits = |name: &str, limit: &str| Row::limits(name, &[limit]);
    let three = "1000/s; 100000/min fixed; 1000000/h sliding";
    let (second, minute) = (1_000_000, 60_000_000);
    let mut rows = vec![
        Row::script(HASH, scripts::HASH),
        limits(TOKEN_BUCKET, "1000/s")?,
        limits("token bucket, denied", "1/d")?.filled(KEYS, 1, 1, 0).denied(),
        limits("queue", "1000/s queue 1000")?,
        limits("fixed", "1000/s fixed")?,
        limits("fixed from-first", "1000/s fixed from-first")?,
        Row::script("*counter*", scripts::COUNTER),
        limits("sliding", "1000/s sliding")?,
        limits(THREE_LIMITS, three)?,
        limits("fixed count-denied, denied", "100000/d fixed count-denied")?
            .filled(KEYS, 1, 100_000, 0)
            .denied(),
        Row::limits("two checks in one request", &["1000/s", "1000/s"])?,
    ];
    for (length, entries, keys, list) in LOGS {
        let log = limits(&format!("log of {length}"), "20000/h log")?;
        rows.push(log.filled(keys, entries, 1, 1_000));
        let set = Row::script(&format!("*sorted set of {length}*"), scripts::SORTED_SET);
        rows.push(set.filled(keys, entries, 1, 1_000));
        let list = Row::script(&format!("*list of {length}*"), list);
        rows.push(list.filled(keys, entries, 1, 1_000));
    }
    rows.extend([
        limits("sliding by, 60 buckets", "1000000/h sliding by 1m")?.filled(1_024, 60, 1, minute),
        limits("sliding by, 1,000 buckets", "1000000/1000s sliding by 1s")?
            .filled(256, 1_000, 1, second),
        limits("concurrent, 20 held", "20 concurrent lease 1h")?.filled(4_096, 18, 1, 1_000),
        limits("concurrent, 1,000 held", "1000 concurrent lease 1h")?.filled(64, 980, 1, 1_000),
        limits("concurrent, 10,000 held", "10000 concurrent lease 1h")?.filled(64, 9_980, 1, 1_000),
    ]);
    for (number, row) in rows.iter_mut().enumerate() {
        row.keys = keys(number, row.keys.len());
    }
    Ok(rows)
}
