//! Texts that the text report and the page share: the cells of their tables, and the notices.

use super::format::{counted, grouped, key, length, second, share, text, window};
use super::{KeyAlternative, Outcome, Peaks, Report, WorstKey};

impl Outcome {
    /// The name, the admitted and the denied requests, the denied keys, each with its share, and
    /// the longest denial, which is `none` if there is none.
    pub(crate) fn cells(&self, report: &Report, none: &str) -> Vec<String> {
        let longest = self.longest_denial.as_ref();
        vec![
            text(&self.name),
            grouped(self.admitted.requests),
            grouped(self.denied.requests),
            share(self.denied.requests, report.offered.requests),
            grouped(self.keys_denied),
            share(self.keys_denied, report.keys),
            longest.map_or(none.to_owned(), |denial| length(denial.length)),
        ]
    }
}

impl WorstKey {
    /// The denied and all requests, the share, the longest and the first denial.
    pub(crate) fn cells(&self) -> [String; 5] {
        [
            grouped(self.denied.requests),
            grouped(self.offered.requests),
            share(self.denied.requests, self.offered.requests),
            length(self.longest_denial),
            second(self.first_denied),
        ]
    }
}

impl Peaks {
    /// The window, the peaks of half and of 99 % of the keys, the highest and its key; `none` for
    /// an absent peak.
    pub(crate) fn cells(&self, none: &str) -> Vec<String> {
        let peak_of = |percent| self.peak_of(percent).map_or(none.to_owned(), grouped);
        let (highest, by) = match &self.highest {
            Some((cost, by)) => (grouped(*cost), key(by)),
            None => (none.to_owned(), String::new()),
        };
        vec![window(self.window), peak_of(50), peak_of(99), highest, by]
    }

    /// The peak that is not exceeded by this percentage of the keys.
    fn peak_of(&self, percent: u64) -> Option<u64> {
        let keys = self.keys_by_cost.iter().map(|(_, keys)| u128::from(*keys)).sum::<u128>();
        let wanted = (keys * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let reached = self.keys_by_cost.iter().find(|(_, keys)| {
            seen += u128::from(*keys);
            seen >= wanted
        });
        reached.map(|(cost, _)| *cost)
    }
}

/// Notices that a reader of a report must see before trusting it: lines that were skipped,
/// reordered or changed.
pub(crate) fn notices(report: &Report) -> Vec<String> {
    let source = &report.source;
    let mut notices = Vec::new();
    if source.interrupted {
        notices.push("interrupted: this report covers only the first part".to_owned());
    }
    if let Some(why) = &source.failed {
        notices.push(format!("this report covers only the first part: {why}"));
    }
    let lines = counted(source.lines, "line");
    if source.invalid > 0 {
        notices.push(format!("{} of {lines} could not be read", grouped(source.invalid)));
    }
    if source.keyless > 0 {
        notices.push(format!("{} of {lines} had no key", grouped(source.keyless)));
    }
    let alternatives = source.key_alternatives.iter();
    let alternatives: Vec<_> = alternatives
        .map(|KeyAlternative { name, lines }| format!("{name} in {}", counted(*lines, "line")))
        .collect();
    if !alternatives.is_empty() {
        notices.push(format!("the key is {}", alternatives.join(", ")));
    }
    if source.unruled > 0 {
        notices.push(format!("no rule matched {} of {lines}", grouped(source.unruled)));
    }
    if source.late > 0 {
        let late = counted(source.late, "line");
        notices.push(format!("{late} arrived too late to be put in order (see --reorder)"));
    }
    if source.spread {
        let spread = "times of whole seconds were spread evenly over their second";
        notices.push(format!("{spread} (see --stamps)"));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Source;

    #[test]
    fn a_percentile_is_the_lowest_sufficient_peak() {
        let peaks = Peaks { keys_by_cost: vec![(1, 50), (2, 49), (900, 1)], ..Peaks::default() };
        assert_eq!(
            [1, 50, 51, 99, 100].map(|percent| peaks.peak_of(percent)),
            [1, 1, 2, 2, 900].map(Some)
        );
        assert_eq!(Peaks::default().peak_of(50), None);
    }

    #[test]
    fn a_notice_appears_only_with_a_reason() {
        let source = Source { lines: 7, ..Source::default() };
        let none = Report { source: source.clone(), ..Report::default() };
        assert_eq!(notices(&none), [""; 0]);
        let source = Source { invalid: 1, keyless: 2, unruled: 4, late: 3, ..source };
        let source = Source { spread: true, interrupted: true, ..source };
        let all = notices(&Report { source, ..Report::default() });
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.contains(&"1 of 7 lines could not be read".to_owned()), "{all:?}");
    }
}
