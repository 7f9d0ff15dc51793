//! Requests on their way, with those who wait for them.

use tokio::sync::oneshot;
use tollgate_core::Timestamp;
use tollgate_store::StoreError;

use crate::answer::Told;
use crate::asked::Asked;

pub(crate) type Outcome = Result<Told, StoreError>;

/// A request that waits to be put into a call.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) asked: Asked,
    pub(crate) line: Line,
    pub(crate) caller: Caller,
}

/// Requests of one line can share a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    /// The group of their keys.
    pub(crate) group: u16,
    /// Whether they go to a node that is just being given the keys.
    pub(crate) asks: bool,
    /// Whether each has a call of its own: while a slot moves, keys of one call can be in two places.
    pub(crate) alone: bool,
}

impl Line {
    pub(crate) const fn of(group: u16) -> Self {
        Line { group, asks: false, alone: false }
    }
}

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) struct Caller {
    answer: oneshot::Sender<Outcome>,
    /// Since when.
    pub(crate) since: Timestamp,
    /// How often the request came back because it belongs elsewhere.
    pub(crate) moves: u8,
}

impl Waiting {
    /// A request, and where its answer will come.
    pub(crate) fn new(
        asked: Asked,
        group: u16,
        since: Timestamp,
    ) -> (Waiting, oneshot::Receiver<Outcome>) {
        let (answer, answered) = oneshot::channel();
        let caller = Caller { answer, since, moves: 0 };
        (Waiting { asked, line: Line::of(group), caller }, answered)
    }
}

impl Caller {
    /// Whether nobody waits any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    /// Tells the caller, if it still waits.
    pub(crate) fn answer(self, outcome: Outcome) {
        // Who has gone does not want to know.
        let _ = self.answer.send(outcome);
    }
}
