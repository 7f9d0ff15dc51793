//! How many tests passed and failed, read from what the test harness prints.

use std::ops::AddAssign;

/// Counts of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Adds what `line` says, if it is the closing line of a test binary, such as
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out`.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("test result: ") else {
            return;
        };
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for count in counts.split(';') {
            match count.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// The tally of a whole output.
    pub(crate) fn of(output: &str) -> Self {
        let mut tally = Self::default();
        output.lines().for_each(|line| tally.read(line));
        tally
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, passed: u64, failed: u64) {
        assert_eq!(Tally::of(output), Tally { passed, failed }, "{output}");
    }

    #[test]
    fn closing_lines_are_summed() {
        check("", 0, 0);
        check("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n", 0, 0);
        check(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test a ... ok\n\
             test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.52s\n",
            15,
            2,
        );
    }

    #[test]
    fn lines_that_only_resemble_one_are_not_counted() {
        check("the test result: ok. 3 passed; 0 failed\ntest 3 passed; 0 failed ... ok", 0, 0);
        check("test result: unknown", 0, 0);
    }
}
