//! The words after the subcommand.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// Words that nobody has asked for yet. A subcommand takes its flags first, then its positional
/// words.
#[derive(Debug)]
pub(crate) struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        Self { words: words.collect() }
    }

    /// Whether `flag` is there; it is taken away.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let position = self.words.iter().position(|word| word == flag);
        position.map(|at| self.words.remove(at)).is_some()
    }

    /// The value that follows `flag`, if the flag is there; both are taken away.
    pub(crate) fn value<T: FromStr>(&mut self, flag: &str) -> Result<Option<T>> {
        let Some(at) = self.words.iter().position(|word| word == flag) else {
            return Ok(None);
        };
        ensure!(at + 1 < self.words.len(), "{flag} needs a value");
        let value = self.words.remove(at + 1);
        self.words.remove(at);
        let parsed = value.parse().ok();
        parsed.map(Some).with_context(|| format!("{flag} does not take '{value}'"))
    }

    /// The next positional word.
    pub(crate) fn positional(&mut self) -> Option<String> {
        let position = self.words.iter().position(|word| !word.starts_with('-'));
        position.map(|at| self.words.remove(at))
    }

    /// Ends the reading: whatever is left is a mistake.
    pub(crate) fn finish(self) -> Result<()> {
        ensure!(
            self.words.is_empty(),
            "unknown: {} (`cargo xtask help` lists what there is)",
            self.words.join(" ")
        );
        Ok(())
    }

    /// Ends the reading: whatever is left is for another program.
    pub(crate) fn rest(self) -> Vec<String> {
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(String::from))
    }

    #[test]
    fn flags_values_and_words_stand_in_any_order() {
        let mut arguments = arguments("notation --seconds 5 --list");
        assert!(arguments.flag("--list"));
        assert_eq!(arguments.value("--seconds").unwrap(), Some(5_u64));
        assert_eq!(arguments.positional().as_deref(), Some("notation"));
        arguments.finish().unwrap();
    }

    #[test]
    fn mistakes_are_told() {
        assert!(arguments("--fats").finish().is_err());
        assert!(arguments("--seconds").value::<u64>("--seconds").is_err());
        assert!(arguments("--seconds soon").value::<u64>("--seconds").is_err());
    }
}
