//! The table of variables for users.

use super::variables::{GROUPS, Row, Variable};

/// The output of `--variables`.
pub(super) fn text() -> String {
    let groups: Vec<String> = GROUPS
        .iter()
        .map(|group| {
            let rows: String = group.rows.iter().map(row).collect();
            format!("{}\n{rows}", group.title)
        })
        .collect();
    groups.join("\n")
}

fn row(row: &Row) -> String {
    match row {
        Row::Read(variable) => {
            format!("  {}{}\n      {}\n", variable.name, default(variable), variable.effect)
        }
        Row::Ignored(ignored) => {
            format!("  {}\n      ignored: {}\n", ignored.pattern, ignored.reason)
        }
    }
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
    use super::super::variables::{all, find, find_ignored};
    use super::*;

    /// All variables of envoyproxy/ratelimit as of July 2026, with one that Envoy Gateway sets and
    /// one of a later version.
    const NAMES: &str = include_str!("variables.txt");

    /// The tables of docs/ratelimit.md.
    fn tables() -> String {
        let mut text = String::new();
        for group in GROUPS {
            let header = "| Variable | Default | Effect |\n|---|---|---|\n";
            text += &format!("### {}\n\n{header}", group.title);
            for row in group.rows {
                text += &match row {
                    Row::Read(Variable { name, default: "", effect, .. }) => {
                        format!("| `{name}` |  | {effect} |\n")
                    }
                    Row::Read(Variable { name, default, effect, .. }) => {
                        format!("| `{name}` | `{default}` | {effect} |\n")
                    }
                    Row::Ignored(ignored) => {
                        format!("| `{}` |  | *Ignored*: {}. |\n", ignored.pattern, ignored.reason)
                    }
                };
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn docs_contain_the_tables() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ratelimit.md");
        let page = std::fs::read_to_string(page).unwrap();
        let tables = tables();
        assert!(page.contains(tables.trim_end()), "docs/ratelimit.md must contain\n{tables}");
    }

    #[test]
    fn every_variable_of_the_original_is_read_or_ignored() {
        for name in NAMES.lines() {
            let is_read = find(name).is_some();
            assert!(is_read != find_ignored(name).is_some(), "{name}: read is {is_read}");
        }
        assert_eq!(NAMES.lines().count(), 116);
        for variable in all() {
            assert!(NAMES.lines().any(|name| name == variable.name), "{}", variable.name);
        }
    }

    #[test]
    fn rows_are_well_formed() {
        for variable in all() {
            let Variable { name, kind, default, effect, .. } = variable;
            assert_eq!(all().filter(|other| other.name == *name).count(), 1, "{name}");
            assert!(effect.ends_with('.'), "{name}");
            assert!(default.is_empty() || kind.parse(default).is_ok(), "{name}");
        }
        for row in GROUPS.iter().flat_map(|group| group.rows) {
            if let Row::Ignored(ignored) = row {
                // The reason follows a colon, and other text follows the reason.
                assert!(!ignored.reason.ends_with('.'), "{}", ignored.pattern);
            }
        }
    }

    #[test]
    fn listing_shows_type_default_and_effect() {
        let text = text();
        let port = "\n  PORT (number) [8080]\n      The port of `/json` and `/healthcheck`.\n";
        assert!(text.contains(port), "{text}");
        assert!(text.contains("\n  STATSD_*\n      ignored: StatsD is not supported"), "{text}");
    }
}
