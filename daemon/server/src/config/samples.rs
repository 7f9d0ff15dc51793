//! What the daemon runs with where nobody says.

use super::error::Complaints;
use super::tree::{Body, Node, Origin};
use super::{Config, Layers, yaml};

/// The sample policies.
const SAMPLES: &str = "\
policies:
  api: { limits: [10/s burst 20] }
  jobs: { limits: [20 concurrent lease 60s] }
  login: { limits: [5/min log] }
  search: { limits: [10/s fixed, 120/min fixed, 240/h sliding by 1min] }
";

/// The samples as if they stood in a file.
pub(super) fn tree() -> Node {
    let tree = yaml::parse(SAMPLES, &Complaints::default());
    let mut tree = tree.unwrap_or_else(|_| Node::nothing(Origin::Sample));
    mark(&mut tree);
    tree
}

/// Says of all of it that it is from the samples.
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
    /// The defaults, with policies to try.
    #[must_use]
    pub fn samples() -> Config {
        match Layers::new().samples().partial() {
            Ok(partial) => partial.config,
            Err(error) => unreachable!("a test reads the samples: {error}"),
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
