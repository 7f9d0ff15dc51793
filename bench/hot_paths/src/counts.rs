//! Instructions and allocations of hot paths, and those in the repository.

use anyhow::{Context, Result};

/// Hash functions with random seeds move a count by about one percent.
const TOLERANCE_PERCENT: u64 = 3;

/// The cost of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// The path.
    pub(crate) name: String,
    /// The instructions.
    pub(crate) instructions: u64,
    /// Rounded: some operations let a table or a buffer grow.
    pub(crate) allocations: u64,
}

/// A count as a line of the file.
pub(crate) fn line(count: &Count) -> String {
    let Count { name, instructions, allocations } = count;
    format!("{instructions:>7} {allocations:>3}  {name}")
}

/// The file.
pub(crate) fn format(counts: &[Count]) -> String {
    let mut text = "# Instructions and allocations per operation, written by\n\
                    # UPDATE=1 cargo xtask bench hot_paths\n"
        .to_owned();
    for count in counts {
        text.push_str(&line(count));
        text.push('\n');
    }
    text
}

/// The counts of the file.
#[derive(Debug)]
pub(crate) struct Recorded(Vec<Count>);

impl Recorded {
    /// Parses the file.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(parse_line).collect::<Result<_>>().map(Recorded)
    }

    /// Describes each path whose counts are others than these, and those without counts.
    pub(crate) fn differences(&self, counts: &[Count]) -> Vec<String> {
        let mut differences = Vec::new();
        for new in counts {
            match self.0.iter().find(|old| old.name == new.name) {
                None => differences.push(format!("{}: no count is recorded", new.name)),
                Some(old) => differences.extend(difference(old, new)),
            }
        }
        let is_gone = |old: &&Count| counts.iter().all(|new| new.name != old.name);
        let gone = self.0.iter().filter(is_gone);
        differences.extend(gone.map(|old| format!("{}: no such path", old.name)));
        differences
    }
}

fn parse_line(line: &str) -> Result<Count> {
    let parse = || {
        let (instructions, rest) = line.trim().split_once(' ')?;
        let (allocations, name) = rest.trim().split_once("  ")?;
        Some(Count {
            name: name.to_owned(),
            instructions: instructions.parse().ok()?,
            allocations: allocations.parse().ok()?,
        })
    };
    parse().with_context(|| format!("invalid line: {line}"))
}

fn difference(old: &Count, new: &Count) -> Option<String> {
    let (before, after) = (old.instructions, new.instructions);
    let is_within = before.abs_diff(after) * 100 <= before * TOLERANCE_PERCENT;
    if is_within && old.allocations == new.allocations {
        return None;
    }
    // Tenths of a percent.
    let change = before.abs_diff(after) * 1_000 / before.max(1);
    let sign = if after < before { '-' } else { '+' };
    Some(format!(
        "{}: {before} -> {after} instructions ({sign}{}.{} %, the tolerance is \
         {TOLERANCE_PERCENT} %), {} -> {} allocations",
        new.name,
        change / 10,
        change % 10,
        old.allocations,
        new.allocations
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(old: [u64; 2], new: [u64; 2]) -> Vec<String> {
        let count = |[instructions, allocations]: [u64; 2]| Count {
            name: "memory, new key".to_owned(),
            instructions,
            allocations,
        };
        let file = format(&[count(old)]);
        Recorded::parse(&file).unwrap().differences(&[count(new)])
    }

    #[test]
    fn counts_within_the_tolerance_are_no_difference() {
        assert!(differences([1_000, 2], [1_030, 2]).is_empty());
        assert!(differences([1_000, 2], [970, 2]).is_empty());
    }

    #[test]
    fn more_or_fewer_instructions_or_allocations_are_named() {
        let slower = "memory, new key: 1000 -> 1031 instructions (+3.1 %, the tolerance is 3 %), \
                      2 -> 2 allocations";
        assert_eq!(differences([1_000, 2], [1_031, 2]), [slower]);
        let faster = "memory, new key: 1000 -> 900 instructions (-10.0 %, the tolerance is 3 %), \
                      2 -> 0 allocations";
        assert_eq!(differences([1_000, 2], [900, 0]), [faster]);
        assert_eq!(differences([1_000, 0], [1_000, 1]).len(), 1);
    }

    #[test]
    fn paths_without_counts_and_counts_without_paths_are_named() {
        let counts = [Count { name: "new".to_owned(), instructions: 1, allocations: 0 }];
        let recorded = Recorded::parse("# comment\n      1   0  old\n").unwrap();
        let expected = ["new: no count is recorded", "old: no such path"];
        assert_eq!(recorded.differences(&counts), expected);
        assert!(Recorded::parse("1 0").is_err());
    }
}
