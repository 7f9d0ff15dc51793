//! Counts passed and failed tests in the output of the test harness.

use std::ops::AddAssign;

/// Numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Adds the counts of `line` if it is the last line of a test binary, such as
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out`.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("test result: ") else {
            return;
        };
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        // A number that does not parse is no line of the harness.
        for count in counts.split(';') {
            match count.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// Sums the counts in a complete output.
    pub(crate) fn from_output(output: &str) -> Self {
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
        assert_eq!(Tally::from_output(output), Tally { passed, failed }, "{output}");
    }

    #[test]
    fn counts_of_all_test_binaries_are_summed() {
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
    fn similar_lines_are_ignored() {
        check("the test result: ok. 3 passed; 0 failed\ntest 3 passed; 0 failed ... ok", 0, 0);
        check("test result: unknown", 0, 0);
    }
}
