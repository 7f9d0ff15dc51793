//! Arguments of a subcommand.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// The arguments that have not been read yet. A subcommand reads its flags first, then its
/// positional arguments.
#[derive(Debug)]
pub(crate) struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        Self { words: words.collect() }
    }

    /// Removes `flag` and returns whether it was present.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let position = self.words.iter().position(|word| word == flag);
        position.map(|at| self.words.remove(at)).is_some()
    }

    /// Removes `flag` and its value, if present, and returns the value.
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

    /// Removes and returns the next positional argument.
    pub(crate) fn positional(&mut self) -> Option<String> {
        let position = self.words.iter().position(|word| !word.starts_with('-'));
        position.map(|at| self.words.remove(at))
    }

    /// Fails if arguments are left.
    pub(crate) fn finish(self) -> Result<()> {
        ensure!(
            self.words.is_empty(),
            "unknown arguments: {}; see `cargo xtask help`",
            self.words.join(" ")
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(String::from))
    }

    #[test]
    fn flags_values_and_positional_arguments_come_in_any_order() {
        let mut arguments = arguments("notation --seconds 5 --list");
        assert!(arguments.flag("--list"));
        assert_eq!(arguments.value("--seconds").unwrap(), Some(5_u64));
        assert_eq!(arguments.positional().as_deref(), Some("notation"));
        arguments.finish().unwrap();
    }

    #[test]
    fn unknown_flags_and_bad_values_are_errors() {
        assert!(arguments("--fats").finish().is_err());
        assert!(arguments("--seconds").value::<u64>("--seconds").is_err());
        assert!(arguments("--seconds soon").value::<u64>("--seconds").is_err());
    }
}
