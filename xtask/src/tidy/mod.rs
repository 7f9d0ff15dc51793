//! `cargo xtask tidy`: what the compiler cannot see about the source. Each rule is a file that
//! offers one `RULE`.

mod clocks;
mod exceptions;
mod files;
mod functions;
mod leftovers;
mod links;
mod lua;
mod machines;
mod mentions;
mod source;
mod whitespace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use self::source::Tree;
use crate::arguments::Arguments;
use crate::{Subcommand, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "tidy",
    usage: "",
    about: "long functions, stray clocks, stale links, leftovers",
    run,
};

/// Something that the whole tree must keep.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    find: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    files::RULE,
    functions::RULE,
    clocks::RULE,
    leftovers::RULE,
    mentions::RULE,
    machines::RULE,
    whitespace::RULE,
    links::RULE,
    lua::RULE,
];

/// A place where a rule is not kept.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// The file, or `FILE::FUNCTION`: what an exception names.
    place: String,
    line: usize,
    message: String,
    /// What an exception's `at_most` bounds: lines where the rule is about lines, else 1.
    size: usize,
}

impl Finding {
    fn new(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.to_owned(), line, message: message.into(), size: 1 }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    check(&repository::root())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let complaints = complaints(&tree);
    for complaint in &complaints {
        println!("{complaint}");
    }
    ensure!(
        complaints.is_empty(),
        "{} complaints; an exception needs its reason, in xtask/src/tidy/exceptions.rs",
        complaints.len()
    );
    println!("{} files are tidy", tree.files.len());
    Ok(())
}

fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for rule in RULES {
        let findings = (rule.find)(tree);
        complaints.extend(exceptions::sift(exceptions::EXCEPTIONS, rule.name, findings));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        check(&repository::root()).unwrap();
    }

    #[test]
    fn every_exception_names_a_rule() {
        for exception in exceptions::EXCEPTIONS {
            assert!(RULES.iter().any(|rule| rule.name == exception.rule), "{exception:?}");
        }
    }
}
