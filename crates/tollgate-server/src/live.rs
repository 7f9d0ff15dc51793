//! What a reload replaces, whole.

use tollgate::Policies;

use crate::config::{Bounds, Config, HeaderStyle};

/// What a reload replaces, whole: a request holds one of these from its beginning to its end, so
/// that it never meets half of a change.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) policies: Policies,
    pub(crate) bounds: Bounds,
    /// How headers tell a client its limits.
    pub(crate) headers: Vec<HeaderStyle>,
}

impl Live {
    pub(crate) fn of(config: &Config) -> Self {
        Live {
            policies: config.policies.clone(),
            bounds: config.limits.clone(),
            headers: config.headers.clone(),
        }
    }

    /// The names of the first policies, for whoever named none; nothing if there is none.
    pub(crate) fn names_of_policies(&self) -> Option<String> {
        const MOST_NAMED: usize = 8;
        let mut names: Vec<_> = self.policies.iter().map(|it| it.name()).collect();
        if names.len() > MOST_NAMED {
            names.truncate(MOST_NAMED);
            names.push("…");
        }
        (!names.is_empty()).then(|| names.join(", "))
    }
}
