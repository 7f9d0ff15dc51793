//! The expressions of the dashboard and the alerts, and the metrics that they select.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::deploy::alerts;
use crate::process::read_repository;

/// A metric with labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    pub(crate) labels: BTreeSet<String>,
}

impl Selector {
    /// Parses a name and optional labels in braces.
    pub(crate) fn parse(text: &str) -> Self {
        let (name, rest) = text.split_once('{').unwrap_or((text, ""));
        Selector { name: name.trim().to_owned(), labels: labels(rest) }
    }
}

/// The names of labels up to the closing brace. Their values may contain any characters.
fn labels(text: &str) -> BTreeSet<String> {
    let (mut names, mut name) = (BTreeSet::new(), String::new());
    let (mut in_value, mut escaped) = (false, false);
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_value => escaped = true,
            '"' => in_value = !in_value,
            _ if in_value => {}
            '}' => break,
            '=' | '!' if !name.is_empty() => drop(names.insert(std::mem::take(&mut name))),
            letter if letter.is_ascii_alphanumeric() || letter == '_' => name.push(letter),
            _ => name.clear(),
        }
    }
    names
}

/// The labels of the last `by` in the text before a selector.
fn grouped(before: &str) -> BTreeSet<String> {
    let Some((_, list)) = before.rsplit_once("by (") else { return BTreeSet::new() };
    let list = list.split(')').next().unwrap();
    list.split(',').map(|part| part.trim().to_owned()).collect()
}

/// The metrics of Tollgate in an expression, each with its own labels and those of its `by`.
pub(crate) fn selectors(expression: &str) -> Vec<Selector> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut selectors = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find(is_part) {
        let end = rest[at..].find(|c| !is_part(c)).map_or(rest.len(), |length| at + length);
        let name = &rest[at..end];
        let is_ours = ["tollgate_", "process_", "ratelimit_service_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if is_ours || name == "up" {
            let mut selector = Selector { name: name.to_owned(), ..Selector::default() };
            if rest[end..].starts_with('{') {
                selector.labels = labels(&rest[end + 1..]);
            }
            // Only the buckets of a histogram have the label `le`.
            let is_bucket = name.ends_with("_bucket");
            let before = &expression[..expression.len() - rest.len() + at];
            let labels = grouped(before).into_iter().filter(|label| is_bucket || label != "le");
            selector.labels.extend(labels);
            selectors.push(selector);
        }
        rest = &rest[end..];
    }
    selectors
}

/// All expressions, each with the name of its panel, annotation, variable or alert.
pub(crate) fn all() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let dashboard = read_repository("deploy/grafana/tollgate.json");
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap().to_owned();
            all.push((format!("panel {}", panel["title"]), expression));
        }
    }
    for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
        all.push((format!("{}", annotation["name"]), annotation["expr"].as_str().unwrap().into()));
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        // `label_values(SELECTOR, LABEL)` requires the label of the selector.
        let Some(definition) = variable["definition"].as_str() else { continue };
        let inner = definition.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
        let (selector, label) = inner.rsplit_once(", ").unwrap();
        all.push((format!("{}", variable["name"]), format!("count by ({label}) ({selector})")));
    }
    for rule in alerts() {
        all.push((rule["alert"].to_string(), rule["expr"].as_str().unwrap().to_owned()));
    }
    assert!(all.len() > 40, "{all:?}");
    all
}

/// An expression as Grafana sends it.
pub(crate) fn with_variables(expression: &str) -> String {
    let mut text = expression.to_owned();
    for (name, value) in [
        ("$__rate_interval", "1m"),
        ("$__interval", "1m"),
        ("$__range", "1h"),
        ("$job", ".*"),
        ("$instance", ".*"),
        ("$policy", ".*"),
    ] {
        text = text.replace(name, value);
    }
    assert!(!text.contains('$'), "{text}");
    text
}

#[test]
fn selectors_of_an_expression_have_its_labels() {
    let expression = r#"sum by (a, le) (rate(tollgate_x_bucket{b="}\"",c=~"d|e"}[5m])) / up > 1
        unless on (a) sum by (f) (process_y)"#;
    let found = selectors(expression);
    let names: Vec<_> = found.iter().map(|found| &*found.name).collect();
    assert_eq!(names, ["tollgate_x_bucket", "up", "process_y"]);
    assert_eq!(found[0].labels, ["a", "b", "c", "le"].map(String::from).into());
    assert_eq!(found[2].labels, ["f"].map(String::from).into());
}
