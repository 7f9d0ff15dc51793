//! `/rlconfig`: the limits that are in force.

use crate::daemon::Daemon;

pub(super) fn text(daemon: &Daemon) -> String {
    daemon.live().domains.dump()
}
