//! Policies whose mode changes little.

use tollgate::{MIN_LEASE, Policy};
use tollgate_document::ConfigError;

use crate::layers::LoadedConfig;
use crate::tree::{Content, Entry};
use crate::validate::join;

impl LoadedConfig {
    /// The leased policies whose checks the store decides all the same.
    pub(super) fn unused_leases(&self) -> Vec<ConfigError> {
        let policies = self.tree.get("policies").map(|entry| &entry.content);
        let Some(Content::Fields(policies)) = policies else { return Vec::new() };
        let warning = |name: &str, fields: &Entry| {
            let message = self.unused_lease(self.config.policies.get(name).ok()?)?;
            let path = join(&join("policies", name), "mode");
            Some(self.warning_at(&path, &message, &fields.get("mode")?.origin))
        };
        policies.iter().filter_map(|(name, fields)| warning(&name.text, fields)).collect()
    }

    fn unused_lease(&self, policy: &Policy) -> Option<String> {
        let (hold, quota) = (policy.hold()?, policy.quota_per_hold()?);
        if self.config.store.url.is_memory() {
            return Some(format!(
                "the memory store decides every check at once; leased only lowers the limits, to \
                 {policy}"
            ));
        }
        (quota < MIN_LEASE).then(|| {
            format!(
                "the limits admit {quota} in the hold time of {hold} s, and a process leases {MIN_LEASE} or \
                 more; the store decides each check, except in bursts; use exact"
            )
        })
    }
}
