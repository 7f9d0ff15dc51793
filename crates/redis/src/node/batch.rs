//! Requests that share a call.

use redis::Value;
use tollgate_store::{ManualClock, StoreError};

use super::Common;
use crate::answer;
use crate::ask::{self, Call, Injected};
use crate::asked::Asked;
use crate::waiting::{Caller, Line, Waiting};

/// Requests that share a call.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) line: Line,
    asked: Vec<Asked>,
    callers: Vec<Caller>,
    pub(super) call: Call,
    /// How often it was sent with the script before it.
    pub(super) loads: u8,
}

impl Batch {
    pub(super) fn of(waiting: Vec<Waiting>, common: &Common) -> Option<Self> {
        let line = waiting.first()?.line;
        let (asked, callers): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|waiting| (waiting.asked, waiting.caller)).unzip();
        let options = &common.options;
        let injected = |manual_clock: &ManualClock| Injected {
            now: manual_clock.now(),
            short_log: options.short_log,
        };
        let now = options.clock.as_ref().map(injected);
        let call =
            ask::encode(&asked, &common.names, &common.encodings, now, options.request_id_horizon);
        Some(Batch { line, asked, callers, call, loads: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.callers.len()
    }

    /// Answers everyone by the reply to the call.
    pub(super) fn answer(self, reply: Value, common: &Common) {
        match answer::decode(&self.asked, &self.call, reply) {
            Ok(answered) => {
                common.counters.answered(answered.junk, answered.anomalies);
                for (caller, outcome) in self.callers.into_iter().zip(answered.outcomes) {
                    if let Err(error) = &outcome {
                        common.counters.failed(error);
                    }
                    caller.answer(outcome);
                }
            }
            Err(error) => self.fail(&error, common),
        }
    }

    pub(super) fn fail(self, error: &StoreError, common: &Common) {
        for caller in self.callers {
            common.counters.failed(error);
            caller.answer(Err(error.clone()));
        }
    }

    /// The requests again, to be sent elsewhere, in lines of this kind; and those that have come back
    /// too often.
    pub(super) fn into_waiting(self, line: Line) -> (Vec<Waiting>, Vec<Waiting>) {
        let requests = self.asked.into_iter().zip(self.callers);
        let moved = requests.map(|(asked, mut caller)| {
            caller.moves += 1;
            Waiting { asked, line, caller }
        });
        moved.partition(|moved| moved.caller.moves <= MAX_MOVES)
    }
}

/// How often a request is sent elsewhere, at most: servers may send it in a circle.
const MAX_MOVES: u8 = 50;
