//! What is known not to keep a rule, and why. It is a ratchet: an exception that has become too
//! wide is a finding too.

use super::Finding;

#[derive(Debug)]
pub(super) struct Exception {
    pub(super) rule: &'static str,
    /// The file, or `FILE::FUNCTION`.
    pub(super) place: &'static str,
    /// For rules about lines the lines, for others the number of findings.
    pub(super) at_most: usize,
    pub(super) reason: &'static str,
}

pub(super) const EXCEPTIONS: &[Exception] = &[];

/// What remains of a rule's findings, as lines to print.
pub(super) fn sift(exceptions: &[Exception], rule: &str, findings: Vec<Finding>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut left = findings;
    for exception in exceptions.iter().filter(|exception| exception.rule == rule) {
        let (excepted, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|finding| finding.place == exception.place);
        let size: usize = excepted.iter().map(|finding| finding.size).sum();
        left = others;
        if size > exception.at_most {
            left.extend(excepted);
        } else if size < exception.at_most {
            complaints.push(format!(
                "{}: the exception to {rule} may be {size} now, not {} ({})",
                exception.place, exception.at_most, exception.reason
            ));
        }
    }
    complaints.extend(left.iter().map(|finding| {
        let file = finding.place.split("::").next().unwrap_or_default();
        format!("{file}:{}: {} [{rule}]", finding.line, finding.message)
    }));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &[Exception] =
        &[Exception { rule: "functions", place: "a.rs::parse", at_most: 90, reason: "one table" }];

    fn check(size: usize, expected: &str) {
        let finding = Finding { size, ..Finding::new("a.rs::parse", 7, "parse is long") };
        let findings = if size == 0 { vec![] } else { vec![finding] };
        let complaints = sift(LONG, "functions", findings).join("\n");
        assert_eq!(complaints, expected);
    }

    #[test]
    fn an_exception_only_ever_narrows() {
        check(90, "");
        check(91, "a.rs:7: parse is long [functions]");
        check(80, "a.rs::parse: the exception to functions may be 80 now, not 90 (one table)");
        check(0, "a.rs::parse: the exception to functions may be 0 now, not 90 (one table)");
    }

    #[test]
    fn an_exception_is_to_one_rule_in_one_place() {
        let elsewhere = || vec![Finding::new("b.rs::parse", 7, "parse is long")];
        assert_eq!(sift(LONG, "clocks", elsewhere()), ["b.rs:7: parse is long [clocks]"]);
        assert_eq!(sift(LONG, "functions", elsewhere()).len(), 2);
    }
}
