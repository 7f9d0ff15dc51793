//! What a reader of a report must know before trusting it.

use super::Report;
use super::shown::{counted, grouped};

/// Sentences about what was left out, put in order or guessed.
pub(crate) fn notices(report: &Report) -> Vec<String> {
    let source = &report.source;
    let mut notices = Vec::new();
    if source.interrupted {
        notices.push("it was interrupted: this is of the first part only".to_owned());
    }
    if let Some(why) = &source.failed {
        notices.push(format!("this is of the first part only: {why}"));
    }
    let lines = counted(source.lines, "line");
    if source.broken > 0 {
        notices.push(format!("{} of {lines} could not be read", grouped(source.broken)));
    }
    if source.keyless > 0 {
        notices.push(format!("{} of {lines} had no key", grouped(source.keyless)));
    }
    if source.unruled > 0 {
        notices.push(format!("no rule was for {} of {lines}", grouped(source.unruled)));
    }
    if source.late > 0 {
        let late = counted(source.late, "line");
        notices.push(format!("{late} came too late to be put in order: see --reorder"));
    }
    if source.spread {
        let spread = "stamps of whole seconds were spread evenly over their second";
        notices.push(format!("{spread}: see --stamps"));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Source;

    #[test]
    fn nothing_is_said_without_need() {
        let source = Source { lines: 7, ..Source::default() };
        let none = Report { source: source.clone(), ..Report::default() };
        assert_eq!(notices(&none), [""; 0]);
        let source = Source { broken: 1, keyless: 2, unruled: 4, late: 3, ..source };
        let source = Source { spread: true, interrupted: true, ..source };
        let all = notices(&Report { source, ..Report::default() });
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.contains(&"1 of 7 lines could not be read".to_owned()), "{all:?}");
    }
}
