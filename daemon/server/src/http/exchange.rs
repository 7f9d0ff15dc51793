//! One request, with all that its answer is made from.

use crate::audit::Record;
use crate::daemon::Daemon;
use crate::live::Live;
use crate::metrics::{Surface, Timed};

use super::caller::Caller;

/// One request, with all that its answer is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) daemon: &'a Daemon,
    /// What held when the request came.
    pub(crate) live: &'a Live,
    pub(crate) caller: Caller<'a>,
    /// What the audit is to know of it, if it is an operator's.
    pub(crate) record: Option<&'a Record<'a>>,
}

impl<'a> Exchange<'a> {
    /// That it waits for a decision from now on.
    pub(crate) fn timed(&self, surface: Surface) -> Timed<'a> {
        Timed::begin(self.daemon, self.live, surface, Some(self.caller.headers()))
    }
}
