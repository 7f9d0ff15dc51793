//! `/stats`: what is counted, by the names of StatsD.

use std::fmt::Write;

use crate::metrics;
use crate::services::Services;

pub(super) fn text(services: &Services) -> String {
    let mut text = String::new();
    for (name, count) in metrics::statsd(services) {
        // A name may have been chosen by who asked, and a line is one statistic. Writing into a
        // text does not fail.
        let _ = writeln!(text, "{}: {count}", name.replace(char::is_control, "_"));
    }
    text
}
