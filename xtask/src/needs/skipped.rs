//! Tests that a machine lacks something for. They are told of when that is found, and again at the
//! end, so that nobody takes a run without them for a whole one.

use std::env;

use anyhow::Result;

/// What is skipped, and why.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    lines: Vec<String>,
}

impl Skipped {
    /// Notes `tests` if what they need could not be had.
    pub(crate) fn anywhere(&mut self, tests: &str, needed: Result<()>) {
        if let Err(error) = needed {
            let line = format!("SKIPPED: {tests}, because {error:#}");
            println!("{line}");
            self.lines.push(line);
        }
    }

    /// The same, but CI can have what they need, so there it is an error.
    pub(crate) fn unless_in_ci(&mut self, tests: &str, needed: Result<()>) -> Result<()> {
        if env::var_os("CI").is_some() {
            return needed;
        }
        self.anywhere(tests, needed);
        Ok(())
    }

    /// A line for each, and how many; nothing if there are none.
    pub(crate) fn summary(&self) -> String {
        let lines = self.lines.iter().map(|line| format!("{line}\n"));
        let mut summary: String = lines.collect();
        if !self.lines.is_empty() {
            summary += &format!("SKIPPED: {} in all\n", self.lines.len());
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_is_skipped_is_told_again_at_the_end() {
        let mut skipped = Skipped::default();
        skipped.anywhere("tests that ran", Ok(()));
        assert_eq!(skipped.summary(), "");
        skipped.anywhere("some tests", Err(anyhow!("the network refuses")));
        let said = "SKIPPED: some tests, because the network refuses\nSKIPPED: 1 in all\n";
        assert_eq!(skipped.summary(), said);
    }
}
