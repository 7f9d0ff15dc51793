//! Tests and checks that cannot run on this machine. Each is reported when it is skipped and again
//! at the end, so that an incomplete run is not mistaken for a complete one.

use std::env;

use anyhow::Result;

/// What is skipped, and why.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    lines: Vec<String>,
}

impl Skipped {
    /// Records `tests` as skipped if what they need is not available.
    pub(crate) fn note(&mut self, tests: &str, available: Result<()>) {
        if let Err(error) = available {
            let line = format!("SKIPPED: {tests}, because {error:#}");
            println!("{line}");
            self.lines.push(line);
        }
    }

    /// Like [`note`](Self::note), but an error in CI, which can install what these tests need.
    pub(crate) fn note_unless_ci(&mut self, tests: &str, available: Result<()>) -> Result<()> {
        if env::var_os("CI").is_some() {
            return available;
        }
        self.note(tests, available);
        Ok(())
    }

    /// One line for each, and their number; empty if nothing was skipped.
    pub(crate) fn summary(&self) -> String {
        let mut summary: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        if !self.lines.is_empty() {
            summary += &format!("SKIPPED: {} in total\n", self.lines.len());
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn summary_repeats_what_was_skipped() {
        let mut skipped = Skipped::default();
        skipped.note("tests that ran", Ok(()));
        assert_eq!(skipped.summary(), "");
        skipped.note("some tests", Err(anyhow!("the network is unreachable")));
        let expected =
            "SKIPPED: some tests, because the network is unreachable\nSKIPPED: 1 in total\n";
        assert_eq!(skipped.summary(), expected);
    }
}
