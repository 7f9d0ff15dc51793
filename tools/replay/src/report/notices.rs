//! Notices that a reader of a report must see before trusting it.

use super::Report;
use super::format::{counted, grouped};

/// Notices about lines that were skipped, reordered or changed.
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
