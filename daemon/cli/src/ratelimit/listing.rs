//! The table of variables, for people.

use std::fmt::Write;

use super::variables::{Fate, GROUPS, Variable};

/// All variables with what becomes of them.
pub(super) fn text() -> String {
    let mut text = String::new();
    for (at, group) in GROUPS.iter().enumerate() {
        let between = if at == 0 { "" } else { "\n" };
        // Writing into a text does not fail.
        let _ = writeln!(text, "{between}{}", group.title);
        for variable in group.variables {
            let _ = writeln!(text, "  {}{}", variable.name, default(variable));
            let _ = match variable.fate {
                Fate::Honoured(what) => writeln!(text, "      {what}"),
                Fate::Ignored(why) => writeln!(text, "      ignored: {why}"),
            };
        }
    }
    text
}

fn default(variable: &Variable) -> String {
    let kind = variable.kind.name();
    match variable.default {
        "" => format!(" ({kind})"),
        default => format!(" ({kind}) [{default}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the manual has it.
    fn tables() -> String {
        let mut text = String::new();
        for group in GROUPS {
            let (title, head) = (group.title, "| Variable | Default | What becomes of it |");
            writeln!(text, "### {title}\n\n{head}\n|---|---|---|").unwrap();
            for variable in group.variables {
                let name = variable.name;
                let default = match variable.default {
                    "" => String::new(),
                    default => format!("`{default}`"),
                };
                match variable.fate {
                    Fate::Honoured(what) => writeln!(text, "| `{name}` | {default} | {what} |"),
                    Fate::Ignored(why) => {
                        writeln!(text, "| `{name}` | {default} | *Ignored*: {why}. |")
                    }
                }
                .unwrap();
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn the_manual_has_the_tables_of_variables() {
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ratelimit.md");
        let manual = std::fs::read_to_string(manual).unwrap();
        let tables = tables();
        assert!(manual.contains(tables.trim_end()), "docs/ratelimit.md should say\n{tables}");
    }

    #[test]
    fn every_variable_is_there_once_and_says_what_becomes_of_it() {
        let all: Vec<_> = super::super::variables::all().collect();
        for (at, value) in all.iter().enumerate() {
            let name = value.name;
            let is_sign = |c: char| c.is_ascii_uppercase() || c == '_';
            assert!(name.chars().all(is_sign), "{name}");
            assert!(!all[..at].iter().any(|value| value.name == name), "{name} is there twice");
            match value.fate {
                Fate::Honoured(what) => assert!(what.ends_with('.'), "{name}"),
                // It goes on after a colon, and others go on after it.
                Fate::Ignored(why) => assert!(!why.ends_with('.'), "{name}"),
            }
            let is_absent = value.default.is_empty();
            assert!(
                is_absent || value.kind.read(value.default).is_ok(),
                "{name} has a wrong default"
            );
        }
        // 114 of envoyproxy/ratelimit, one that others set for it, and one of its later versions.
        assert_eq!(all.len(), 116);
    }

    #[test]
    fn the_listing_is_for_a_terminal() {
        let text = text();
        assert!(text.contains("\n  PORT (number) [8080]\n      Their port.\n"), "{text}");
        assert!(text.contains("\n  STATSD_HOST (text) [localhost]\n      ignored: nothing is"));
    }
}
