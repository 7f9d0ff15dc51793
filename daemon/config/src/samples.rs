//! The sample policies, which the daemon uses without a configuration.

use tollgate_document::{Body, Diagnostics, Node, Origin, parse};

use crate::layers::LIMITS;
use crate::{Config, Layers};

/// The sample policies.
const SAMPLES: &str = "\
policies:
  api: { limits: [10/s burst 20] }
  jobs: { limits: [20 concurrent lease 60s] }
  login: { limits: [5/min log] }
  search: { limits: [10/s fixed, 120/min fixed, 240/h sliding by 1min] }
";

/// The samples as a tree.
#[expect(clippy::expect_used, reason = "the text is a constant, which a test parses")]
pub(super) fn tree() -> Node {
    let tree = parse(LIMITS, SAMPLES, &Diagnostics::default());
    let mut tree = tree.expect("the samples are YAML");
    mark(&mut tree);
    with_local_operators(tree)
}

/// Adds to fields that clients on this machine may operate: without a file the daemon is tried out.
pub(super) fn with_local_operators(mut fields: Node) -> Node {
    let operators = Node::text("loopback", Origin::Sample).in_field("operators");
    if let (Body::Fields(all), Body::Fields(added)) = (&mut fields.body, operators.body) {
        all.extend(added);
    }
    fields
}

/// Sets the origin of a node and all below it to the samples.
fn mark(node: &mut Node) {
    node.origin = Origin::Sample;
    match &mut node.body {
        Body::Nothing | Body::Text(_) => {}
        Body::List(all) => all.iter_mut().for_each(mark),
        Body::Fields(all) => {
            for (name, inner) in all {
                name.origin = Origin::Sample;
                mark(inner);
            }
        }
    }
}

impl Config {
    /// The defaults, with sample policies.
    #[must_use]
    pub fn samples() -> Config {
        match Layers::new().samples().partial() {
            Ok(partial) => partial.config,
            Err(error) => unreachable!("the samples are valid: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_a_policy() {
        let config = Config::samples();
        let mut names: Vec<_> = config.policies.iter().map(|policy| policy.name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["api", "jobs", "login", "search"]);
    }
}
