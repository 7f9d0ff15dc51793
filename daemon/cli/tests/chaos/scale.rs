//! How much of everything a run has.

use std::time::Duration;

/// The size of the scenarios.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) daemons: usize,
    /// The duration of the load before the fault.
    pub(crate) warm_up: Duration,
    pub(crate) outage: Duration,
    pub(crate) failovers: usize,
    /// After this number of failovers that were requested, the primary is killed.
    pub(crate) kill_each: usize,
    /// The deadline of decisions, in ms.
    pub(crate) deadline: u64,
    /// The mean pause of a client between two checks.
    pub(crate) pause: Duration,
}

impl Scale {
    /// A run beside other tests, on a machine that may be busy.
    pub(crate) fn short() -> Self {
        Scale {
            daemons: 3,
            warm_up: Duration::from_millis(1_500),
            outage: Duration::from_secs(3),
            failovers: 2,
            kill_each: 2,
            deadline: 50,
            pause: Duration::from_millis(12),
        }
    }

    /// `TOLLGATE_CHAOS` is `long` or absent. Both have the default deadline.
    pub(crate) fn from_environment() -> Self {
        match std::env::var("TOLLGATE_CHAOS").as_deref() {
            Ok("long") => Scale {
                daemons: 10,
                warm_up: Duration::from_secs(5),
                outage: Duration::from_secs(60),
                failovers: 50,
                kill_each: 10,
                deadline: 15,
                pause: Duration::from_millis(20),
            },
            Ok(other) => panic!("TOLLGATE_CHAOS={other} is unknown; expected long"),
            Err(_) => Scale { deadline: 15, ..Scale::short() },
        }
    }

    /// The longest that a decision may take. It is far longer than the deadline, because a busy machine
    /// may delay the daemon and the client by as much; the exact figure is printed.
    pub(crate) fn max_latency(&self) -> Duration {
        Duration::from_millis((20 * self.deadline).max(1_000))
    }
}
