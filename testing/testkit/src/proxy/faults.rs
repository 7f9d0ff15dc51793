//! Faults, and the requests that they apply to.

use std::collections::BTreeMap;
use std::time::Duration;

/// What happens to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The proxy forwards it and its reply.
    Pass,
    /// The server does not receive it; the connection closes when its reply is due.
    CutBefore,
    /// The server executes it; the connection closes instead of a reply.
    CutAfterExecution,
    /// The client receives this line as the reply.
    Replace { line: String, executed: bool },
    /// The server does not receive it, and the client receives no more replies on this connection.
    Swallow,
}

impl Fate {
    /// Whether the server receives the request.
    pub(super) fn is_executed(&self) -> bool {
        match self {
            Self::Pass | Self::CutAfterExecution => true,
            Self::Replace { executed, .. } => *executed,
            Self::CutBefore | Self::Swallow => false,
        }
    }
}

/// The active faults of a proxy, and its counters.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) requests: u64,
    pub(super) connections: u64,
    pub(super) delay: Duration,
    pub(super) split_bytes: bool,
    pub(super) blackhole: bool,
    /// The commands that count for `planned`, in upper case; all if empty.
    pub(super) only: Vec<String>,
    counted: u64,
    /// By the number of the counted request.
    planned: BTreeMap<u64, Fate>,
}

impl Faults {
    /// Sets the fate of the `nth` counted request from now; 1 is the next one.
    pub(super) fn plan(&mut self, nth: u64, fate: Fate) {
        assert!(nth > 0, "the next request is number 1");
        self.planned.insert(self.counted + nth, fate);
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
        self.delay = Duration::ZERO;
        self.split_bytes = false;
        self.blackhole = false;
    }

    /// Counts a request and returns its fate. `words` are the first words of the request.
    pub(super) fn fate(&mut self, words: &[String]) -> Fate {
        self.requests += 1;
        if self.blackhole {
            return Fate::Swallow;
        }
        if !self.is_counted(words) {
            return Fate::Pass;
        }
        self.counted += 1;
        // A request without a planned fault passes.
        self.planned.remove(&self.counted).unwrap_or(Fate::Pass)
    }

    /// `FCALL NAME 0` checks a new connection, at any time.
    fn is_counted(&self, words: &[String]) -> bool {
        let command = words.first().map(|command| command.to_uppercase()).unwrap_or_default();
        let is_check = command == "FCALL" && words.get(2).is_some_and(|keys| keys == "0");
        self.only.is_empty() || (self.only.contains(&command) && !is_check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_applies_to_the_planned_request() {
        let words =
            |request: &str| -> Vec<String> { request.split(' ').map(str::to_owned).collect() };
        let mut faults = Faults::default();
        assert_eq!(faults.fate(&words("GET k")), Fate::Pass);
        faults.plan(2, Fate::CutBefore);
        faults.only = vec!["FCALL".to_owned()];
        for (request, expected) in [
            ("fcall x 1 k", Fate::Pass),
            ("GET k", Fate::Pass),
            ("FCALL x 0", Fate::Pass),
            ("fcall x 1 k", Fate::CutBefore),
            ("FCALL x 1 k", Fate::Pass),
        ] {
            assert_eq!(faults.fate(&words(request)), expected, "{request}");
        }
        assert_eq!(faults.requests, 6);
        faults.blackhole = true;
        assert_eq!(faults.fate(&words("GET k")), Fate::Swallow);
        faults.plan(1, Fate::CutBefore);
        faults.clear();
        assert_eq!(faults.fate(&words("FCALL x 1 k")), Fate::Pass);
    }
}
