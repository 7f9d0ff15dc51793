//! What goes wrong, and when.

use std::collections::BTreeMap;
use std::time::Duration;

/// What is to happen to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is passed on, and so is its reply.
    Pass,
    /// The server does not see it, and the connection is closed in its turn.
    CutBefore,
    /// The server executes it, and the connection is closed in place of its reply.
    CutAfterExecution,
    /// It is answered by this line.
    Replace { line: String, executed: bool },
    /// The server does not see it, and nothing is ever answered on this connection again.
    Swallow,
}

impl Fate {
    /// Whether the server sees the request, and so answers it.
    pub(super) fn is_executed(&self) -> bool {
        match self {
            Self::Pass | Self::CutAfterExecution => true,
            Self::Replace { executed, .. } => *executed,
            Self::CutBefore | Self::Swallow => false,
        }
    }
}

/// What a proxy does at the moment, and what it has seen.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) requests: u64,
    pub(super) connections: u64,
    pub(super) delay: Duration,
    pub(super) split_bytes: bool,
    pub(super) blackhole: bool,
    /// The commands that count for `planned`, in capitals; all if it is empty.
    pub(super) only: Vec<String>,
    counted: u64,
    /// By the number of the request that it will happen to.
    planned: BTreeMap<u64, Fate>,
}

impl Faults {
    /// Plans the fate of the `nth` next request that counts; the next is the first.
    pub(super) fn plan(&mut self, nth: u64, fate: Fate) {
        assert!(nth > 0, "the next request is the first");
        self.planned.insert(self.counted + nth, fate);
    }

    pub(super) fn forget(&mut self) {
        self.planned.clear();
        self.delay = Duration::ZERO;
        self.split_bytes = false;
        self.blackhole = false;
    }

    /// Counts a request and says what happens to it.
    pub(super) fn fate(&mut self, command: &str) -> Fate {
        self.requests += 1;
        if self.blackhole {
            return Fate::Swallow;
        }
        if !self.only.is_empty() && !self.only.contains(&command.to_uppercase()) {
            return Fate::Pass;
        }
        self.counted += 1;
        self.planned.remove(&self.counted).unwrap_or(Fate::Pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_meets_the_request_that_it_was_planned_for() {
        let mut faults = Faults::default();
        assert_eq!(faults.fate("GET"), Fate::Pass);
        faults.plan(2, Fate::CutBefore);
        faults.only = vec!["SET".to_owned()];
        for (command, expected) in [
            ("set", Fate::Pass),
            ("GET", Fate::Pass),
            ("set", Fate::CutBefore),
            ("set", Fate::Pass),
        ] {
            assert_eq!(faults.fate(command), expected, "{command}");
        }
        assert_eq!(faults.requests, 5);
        faults.blackhole = true;
        assert_eq!(faults.fate("GET"), Fate::Swallow);
        faults.plan(1, Fate::CutBefore);
        faults.forget();
        assert_eq!(faults.fate("SET"), Fate::Pass);
    }
}
