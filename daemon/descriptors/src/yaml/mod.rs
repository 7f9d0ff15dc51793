//! Parses a file, and rejects everything that envoyproxy/ratelimit rejects.
//!
//! envoyproxy/ratelimit reads YAML 1.1: `yes` is true, `010` is eight, and a number is accepted as
//! a string. [`Scalar`] implements these rules; the parser's own schema is not used.

mod fields;
mod keys;
mod metadata;
mod scalar;

use tollgate_document::{Body, ConfigError, Diagnostics, Name, Node, Origin, YamlLimits, parse};

use super::config::{DomainConfig, MAX_DEPTH};
use super::error::DescriptorConfigError;
use fields::Fields;
pub(super) use scalar::Scalar;

/// A descriptor has two levels: the list that contains it, and its fields.
const LIMITS: YamlLimits = YamlLimits {
    values: 1_000_000,
    depth: 2 * MAX_DEPTH,
    remedy: "remove some, or replace them by wildcards",
};

/// Parses a file.
///
/// # Errors
/// The text is not YAML, exceeds the limits, or is not a configuration.
pub(super) fn read(file: &str, text: &str) -> Result<DomainConfig, DescriptorConfigError> {
    let root = tree(text).map_err(|(line, error)| {
        let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        DescriptorConfigError::new(
            file,
            line,
            format!("error loading config file: yaml: {at}{error}"),
        )
    })?;
    let mut fields = Fields::default();
    if !matches!(root.body, Body::Nothing | Body::Fields(_)) {
        fields.refuse(&root, "map[interface {}]interface {}");
    } else {
        let refused = keys::check(&root, false);
        refused.map_err(|(line, error)| DescriptorConfigError::new(file, line, error))?;
    }
    let config = fields.domain(&root);
    match fields.into_errors() {
        None => Ok(config),
        Some((line, errors)) => {
            let message = format!("error loading config file: yaml: unmarshal errors:{errors}");
            Err(DescriptorConfigError::new(file, line, message))
        }
    }
}

/// Parses YAML. Only the first mistake is reported, as in envoyproxy/ratelimit.
fn tree(text: &str) -> Result<Node, (Option<usize>, String)> {
    let diagnostics = Diagnostics::default();
    let position = |error: &ConfigError| (error.line(), error.message().to_owned());
    let root = parse(LIMITS, text, &diagnostics).map_err(|error| position(&error))?;
    match diagnostics.into_errors(None).iter().next() {
        Some(error) => Err(position(error)),
        None => Ok(root),
    }
}

fn line(origin: &Origin) -> Option<usize> {
    match origin {
        Origin::File(span) => Some(span.line),
        _ => None,
    }
}

/// A value as envoyproxy/ratelimit prints it.
fn printed(node: &Node) -> String {
    match &node.body {
        Body::Nothing => "<nil>".to_owned(),
        Body::Text(text) => Scalar::parse(text, node.quoted).to_string(),
        Body::List(all) => {
            let all = all.iter().map(printed).collect::<Vec<_>>();
            format!("[{}]", all.join(" "))
        }
        Body::Fields(all) => {
            let mut all = all
                .iter()
                .map(|(name, node)| format!("{}:{}", printed_name(name), printed(node)))
                .collect::<Vec<_>>();
            all.sort_unstable();
            format!("map[{}]", all.join(" "))
        }
    }
}

fn printed_name(name: &Name) -> String {
    Scalar::parse(&name.text, name.quoted).to_string()
}
