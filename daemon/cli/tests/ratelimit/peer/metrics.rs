//! The metrics of limits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::original::Original;
use crate::installation::Ratelimit;

/// Compares the metrics of limits. The original updates its page from time to time.
pub(crate) async fn compare(original: &Original, ours: &Ratelimit) {
    let ours = read(&ours.debug("/metrics"));
    assert!(ours.len() > 100, "{ours:#?}");
    let mut theirs = BTreeMap::new();
    for _ in 0..100 {
        theirs = read(&original.metrics());
        if theirs == ours {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let differences: Vec<_> = ours
        .keys()
        .chain(theirs.keys())
        .filter(|series| ours.get(*series) != theirs.get(*series))
        .map(|series| format!("{series}: {:?}, not {:?}", ours.get(series), theirs.get(series)))
        .collect();
    panic!("{}", differences.join("\n"));
}

/// The series that have counted something, with sorted labels.
fn read(page: &str) -> BTreeMap<String, String> {
    let lines = page.lines().filter_map(|line| line.rsplit_once(' '));
    let lines = lines.filter(|(series, value)| {
        // The original has a metric for each unknown domain, Tollgate a label.
        series.starts_with("ratelimit_service_rate_limit_")
            && !series.contains("domain_not_found")
            && *value != "0"
    });
    lines.map(|(series, value)| (sort_labels(series), value.to_owned())).collect()
}

fn sort_labels(series: &str) -> String {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let mut labels: Vec<_> = labels.trim_end_matches('}').split(',').collect();
    labels.sort_unstable();
    format!("{name} {}", labels.join(","))
}
