//! Validates field names and the types of lists.

use super::scalar::Scalar;
use super::{Body, Name, Node, line, printed, printed_name};

/// All fields. envoyproxy/ratelimit ignores a known field in a place where it has no meaning.
const KNOWN: [&str; 16] = [
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "quota_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];

/// Rejects unknown fields, and lists of anything but mappings.
///
/// # Errors
/// The line of the first mistake, and the message of envoyproxy/ratelimit.
pub(super) fn check(node: &Node, in_limit: bool) -> Result<(), (Option<usize>, String)> {
    let Body::Fields(fields) = &node.body else { return Ok(()) };
    for (name, value) in fields {
        check_name(name, in_limit).map_err(|error| (line(&name.origin), error))?;
        match &*name.text {
            // Metadata is passed on unchanged.
            "metadata" => {}
            "limit" if in_limit => {}
            name => check_value(value, name == "rate_limit")?,
        }
    }
    Ok(())
}

fn check_name(name: &Name, in_limit: bool) -> Result<(), String> {
    if !matches!(Scalar::parse(&name.text, name.quoted), Scalar::Text(_)) {
        return Err(format!("config error, key is not of type string: {}", printed_name(name)));
    }
    let is_extension = in_limit && name.text == "limit";
    if is_extension || KNOWN.contains(&&*name.text) {
        return Ok(());
    }
    Err(format!("config error, unknown key '{}'", name.text))
}

fn check_value(value: &Node, is_limit: bool) -> Result<(), (Option<usize>, String)> {
    let wrong = |node: &Node, message: String| Err((line(&node.origin), message));
    match &value.body {
        Body::Nothing => Ok(()),
        Body::Fields(_) => check(value, is_limit),
        Body::List(all) => all.iter().try_for_each(|element| match element.body {
            Body::Fields(_) => check(element, is_limit),
            _ => {
                let message = "config error, yaml file contains list of type other than map";
                wrong(element, format!("{message}: {}", printed(element)))
            }
        }),
        Body::Text(text) => match Scalar::parse(text, value.quoted) {
            Scalar::Float(_) | Scalar::Unsigned(_) => {
                wrong(value, "error checking config".to_owned())
            }
            _ => Ok(()),
        },
    }
}
