//! A request, divided by the groups of its keys.

use crate::asked::{Asked, AskedCheck};
use crate::names::Names;

/// The checks of a request in one group.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) group: u16,
    pub(super) checks: Vec<AskedCheck>,
    /// Which checks of the request they are.
    pub(super) places: Vec<usize>,
}

/// A request, divided by the groups of its keys. That of the first check stands first.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// What has a say; where all are shadows the first of them.
    pub(super) enforced: Vec<Part>,
    /// Checks of shadow policies.
    pub(super) shadows: Vec<Part>,
}

impl Parts {
    pub(super) fn of(request: &Asked, names: &Names) -> Self {
        let mut parts = Parts::default();
        for (place, check) in request.checks.iter().enumerate() {
            let group = names.group_of(&check.key);
            let is_shadow = check.policy.is_shadow();
            let list = if is_shadow { &mut parts.shadows } else { &mut parts.enforced };
            let known = list.iter().position(|list| list.group == group).unwrap_or_else(|| {
                list.push(Part { group, checks: Vec::new(), places: Vec::new() });
                list.len() - 1
            });
            if let Some(part) = list.get_mut(known) {
                part.checks.push(check.clone());
                part.places.push(place);
            }
        }
        if parts.enforced.is_empty() {
            parts.enforced.extend(parts.shadows.drain(..1.min(parts.shadows.len())));
        }
        parts
    }
}
