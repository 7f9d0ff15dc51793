//! What is measured: limits or scripts, and the state that their keys are in.

use tollgate_core::{NotationError, Policy};

use crate::scripts::{self, Script};

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) asked: Asked,
    pub(crate) keys: Vec<String>,
    pub(crate) filled: Filled,
}

/// What decides.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// A policy for each check of a request; whether they admit it.
    Policies(Vec<Policy>, bool),
    Script(Script),
}

/// What is charged to a key before anything is measured: so many entries of a cost, so many µs apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    pub(crate) entries: u64,
    pub(crate) cost: u32,
    pub(crate) apart: u64,
}

impl Row {
    /// Acquires and releases a place, each a decision.
    pub(crate) fn has_leases(&self) -> bool {
        matches!(&self.asked, Asked::Policies(them, _) if them.iter().any(Policy::has_concurrent))
    }

    pub(crate) fn key(&self, number: usize) -> &str {
        self.keys.get(number % self.keys.len().max(1)).map_or("", |key| key)
    }

    /// The limits' policy is called by a name, as they are in configurations.
    pub(crate) fn limits(name: &str, limits: &[&str]) -> Result<Self, NotationError> {
        let named = |text: &&str| {
            let limits: Policy = text.parse()?;
            // No name is refused, nor are limits that were a policy's already.
            Ok(Policy::new("api", limits.limits().iter().copied()).unwrap_or(limits))
        };
        let policies = limits.iter().map(named).collect::<Result<_, NotationError>>()?;
        Ok(Row::new(name, Asked::Policies(policies, true), 1_024))
    }

    pub(crate) fn script(name: &str, script: Script) -> Self {
        Row::new(name, Asked::Script(script), 1_024)
    }

    fn new(name: &str, asked: Asked, keys: usize) -> Self {
        let (name, filled) = (name.to_owned(), Filled::default());
        Row { name, asked, keys: keys_of(0, keys), filled }
    }

    fn denied(mut self) -> Self {
        if let Asked::Policies(_, admits) = &mut self.asked {
            *admits = false;
        }
        self
    }

    fn filled(mut self, keys: usize, entries: u64, cost: u32, apart: u64) -> Self {
        self.keys = keys_of(0, keys);
        self.filled = Filled { entries, cost, apart };
        self
    }
}

/// 24-byte keys that no other row has.
fn keys_of(row: usize, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("user:{:019}", row * 1_000_000 + n)).collect()
}

pub(crate) const HASH: &str = "*hash*";
pub(crate) const TOKEN_BUCKET: &str = "token bucket";
pub(crate) const THREE_LIMITS: &str = "three limits";

/// Entries of a log as they are called, how many there are at first, and of how many keys: enough
/// that what is measured lengthens no log much, and none to the 10,000 entries that are kept.
const LOGS: [(&str, u64, usize, Script); 4] = [
    ("10", 10, 8_192, scripts::list(&["1", "10"])),
    ("100", 100, 2_048, scripts::list(&["1", "100"])),
    ("1,000", 1_000, 256, scripts::list(&["1", "1000"])),
    ("10,000", 9_600, 64, scripts::list(&["1", "9600"])),
];

/// All lines, the peers in italics; the hash comes first.
pub(crate) fn all() -> Result<Vec<Row>, NotationError> {
    let limits = |name: &str, limit: &str| Row::limits(name, &[limit]);
    let three = "1000/s; 100000/min fixed; 1000000/h sliding";
    let (second, minute) = (1_000_000, 60_000_000);
    let mut rows = vec![
        Row::script(HASH, scripts::HASH),
        limits(TOKEN_BUCKET, "1000/s")?,
        limits("token bucket, denied", "1/d")?.filled(1_024, 1, 1, 0).denied(),
        limits("queue", "1000/s queue 1000")?,
        limits("fixed", "1000/s fixed")?,
        limits("fixed from-first", "1000/s fixed from-first")?,
        Row::script("*counter*", scripts::COUNTER),
        limits("sliding", "1000/s sliding")?,
        limits(THREE_LIMITS, three)?,
        limits("fixed count-denied, denied", "100000/d fixed count-denied")?
            .filled(1_024, 1, 100_000, 0)
            .denied(),
        Row::limits("two checks in one request", &["1000/s", "1000/s"])?,
    ];
    for (called, entries, keys, list) in LOGS {
        let log = limits(&format!("log of {called}"), "20000/h log")?;
        rows.push(log.filled(keys, entries, 1, 1_000));
        let set = Row::script(&format!("*sorted set of {called}*"), scripts::SORTED_SET);
        rows.push(set.filled(keys, entries, 1, 1_000));
        let list = Row::script(&format!("*list of {called}*"), list);
        rows.push(list.filled(keys, entries, 1, 1_000));
    }
    rows.extend([
        limits("sliding by, 60 buckets", "1000000/h sliding by 1m")?.filled(1_024, 60, 1, minute),
        limits("sliding by, 1,000 buckets", "1000000/1000s sliding by 1s")?
            .filled(256, 1_000, 1, second),
        limits("concurrent, 20 held", "20 concurrent lease 1h")?.filled(1_024, 18, 1, 1_000),
        limits("concurrent, 1,000 held", "1000 concurrent lease 1h")?.filled(64, 990, 1, 1_000),
    ]);
    for (number, row) in rows.iter_mut().enumerate() {
        row.keys = keys_of(number, row.keys.len());
    }
    Ok(rows)
}
