//! `/rlconfig`: the limits that are in force.

use crate::services::Services;

pub(super) fn text(services: &Services) -> String {
    services.engine.active().domains.dump()
}
