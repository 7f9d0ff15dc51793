//! The expressions of the dashboard and the alerts, and what they ask for.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::promtool::deploy;

/// A metric that is asked for, with the labels that are asked of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    pub(crate) labels: BTreeSet<String>,
}

impl Selector {
    /// The one that a text begins with: a name, and labels in braces if there are any.
    pub(crate) fn read(text: &str) -> Self {
        let (name, rest) = text.split_once('{').unwrap_or((text, ""));
        Selector { name: name.trim().to_owned(), labels: labels(rest) }
    }
}

/// The names of labels up to the closing brace; their values may hold anything.
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

/// Every metric of ours that an expression names. Labels that results are grouped by are asked of
/// each.
pub(crate) fn selectors(expression: &str) -> Vec<Selector> {
    let mut grouped = BTreeSet::new();
    for (at, _) in expression.match_indices("by (") {
        let list = expression[at + 4..].split(')').next().unwrap();
        grouped.extend(list.split(',').map(|part| part.trim().to_owned()));
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut selectors = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find(is_part) {
        let end = rest[at..].find(|x| !is_part(x)).map_or(rest.len(), |x| at + x);
        let name = &rest[at..end];
        let is_ours = ["tollgate_", "process_"].iter().any(|x| name.starts_with(x));
        if is_ours || name == "up" {
            let mut selector = Selector { name: name.to_owned(), ..Selector::default() };
            if rest[end..].starts_with('{') {
                selector.labels = labels(&rest[end + 1..]);
            }
            // Only a histogram's classes are grouped by `le`.
            let is_class = name.ends_with("_bucket");
            let asked = grouped.iter().filter(|grouped| is_class || *grouped != "le");
            selector.labels.extend(asked.cloned());
            selectors.push(selector);
        }
        rest = &rest[end..];
    }
    selectors
}

/// Every expression, with the place where it stands.
pub(crate) fn all() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let dashboard = fs::read_to_string(deploy("grafana/tollgate.json")).unwrap();
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
        // `label_values(SELECTOR, LABEL)`: the label is asked of the selector.
        let Some(asked) = variable["definition"].as_str() else { continue };
        let inner = asked.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
        let (selector, label) = inner.rsplit_once(", ").unwrap();
        all.push((format!("{}", variable["name"]), format!("count by ({label}) ({selector})")));
    }
    let rules = fs::read_to_string(deploy("prometheus/rules.yaml")).unwrap();
    let rules: Value = serde_norway::from_str(&rules).unwrap();
    for group in rules["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            all.push((rule["alert"].to_string(), rule["expr"].as_str().unwrap().to_owned()));
        }
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
fn what_an_expression_asks_for_is_found() {
    let expression = r#"sum by (a, le) (rate(tollgate_x_bucket{b="}\"",c=~"d|e"}[5m])) / up > 1"#;
    let found = selectors(expression);
    let names: Vec<_> = found.iter().map(|found| &*found.name).collect();
    assert_eq!(names, ["tollgate_x_bucket", "up"]);
    assert_eq!(found[0].labels, ["a", "b", "c", "le"].map(String::from).into());
}
