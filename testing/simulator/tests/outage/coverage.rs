//! The states in which decisions were made during each fault and after it.

use std::collections::BTreeMap;
use std::fmt;

use tollgate::Source;
use tollgate_redis::BreakerState;

use crate::Fault;
use crate::traffic::{Event, Trace};

/// How a request was answered, as a column of the table.
const ANSWERS: [&str; 5] = ["by store", "remembered", "by share", "no share left", "in all"];

/// The number of decisions by fault, state of the circuit breaker, and answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<(Fault, &'static str), [u64; ANSWERS.len()]>);

fn column(event: &Event) -> usize {
    match (event.source, event.is_admitted) {
        (Source::DenyCache, _) => 1,
        (Source::Fallback, true) => 2,
        (Source::Fallback, false) => 3,
        _ => 0,
    }
}

impl Coverage {
    /// Counts the decisions since the beginning of the fault.
    pub(crate) fn add(&mut self, fault: Fault, trace: &Trace) {
        for event in trace.events.iter().filter(|event| event.at >= trace.began_at) {
            let counts = self.0.entry((fault, event.breaker.as_str())).or_default();
            counts[column(event)] += 1;
            counts[ANSWERS.len() - 1] += 1;
        }
    }

    /// Asserts that each fault was met in each state of the breaker, and each answer was given. A breaker
    /// that is open or half-open sends no request, so the store decides nothing. A crash closes the
    /// connections: requests fail at once, and the breaker stays closed.
    pub(crate) fn assert_states(&self) {
        for fault in Fault::ALL {
            let states = if fault == Fault::Crash { 1 } else { BreakerState::ALL.len() };
            for state in BreakerState::ALL.iter().take(states).map(|state| state.as_str()) {
                let counts = self.0.get(&(fault, state)).copied().unwrap_or_default();
                assert!(counts[4] > 0, "{fault:?}, breaker {state}: no decision");
                let is_rejecting = state == "open" || state == "half_open";
                assert!(!is_rejecting || counts[0] == 0, "{fault:?}, breaker {state}: {counts:?}");
            }
            let sum = |column: usize| -> u64 {
                self.0.iter().filter(|((f, _), _)| *f == fault).map(|(_, c)| c[column]).sum()
            };
            assert!((0..4).all(|column| sum(column) > 0), "{fault:?}: an answer is missing");
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<18} {:<9}", "fault", "breaker")?;
        ANSWERS.iter().try_for_each(|answer| write!(f, " {answer:>13}"))?;
        for ((fault, state), counts) in &self.0 {
            write!(f, "\n{:<18} {state:<9}", format!("{fault:?}"))?;
            counts.iter().try_for_each(|count| write!(f, " {count:>13}"))?;
        }
        Ok(())
    }
}
