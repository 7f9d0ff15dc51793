//! What a reload replaces, whole.

use std::sync::Arc;

use tollgate::Policies;

use crate::access::Access;
use crate::config::{Bounds, Config, Envoy, HeaderStyle, Privacy};
use crate::metrics::Tallies;
use crate::privacy;
use crate::ratelimit::Domains;
use crate::rules::{Ipv6Prefix, Jwt, Networks, Rules};

/// What a reload replaces, whole: a request holds one of these from its beginning to its end, so
/// that it never meets half of a change.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) policies: Policies,
    /// Where what is decided under them is counted, once it is applied.
    pub(crate) tallies: Tallies,
    pub(crate) bounds: Bounds,
    pub(crate) rules: Rules,
    pub(crate) trusted_proxies: Networks,
    pub(crate) ipv6_prefix: Ipv6Prefix,
    pub(crate) jwt: Option<Jwt>,
    /// How Envoy's rate limit service is answered.
    pub(crate) envoy: Envoy,
    /// The domains that hold: those of files, unless a control plane sent others.
    pub(crate) domains: Arc<Domains>,
    /// How headers tell a client its limits.
    pub(crate) headers: Vec<HeaderStyle>,
    /// Who may do what.
    pub(crate) access: Access,
    /// How keys show in logs and in the audit.
    privacy: Privacy,
    namespace: String,
}

impl Live {
    /// What a configuration says, with the tokens that are in files.
    ///
    /// # Errors
    /// Tokens cannot be used.
    pub(crate) fn of(config: &Config) -> Result<Self, String> {
        Ok(Live {
            policies: config.policies.clone(),
            tallies: Tallies::default(),
            bounds: config.limits.clone(),
            rules: config.rules.clone(),
            trusted_proxies: config.trusted_proxies.clone(),
            ipv6_prefix: config.ipv6_prefix,
            jwt: config.jwt.clone(),
            envoy: config.envoy.clone(),
            domains: Arc::clone(&config.domains),
            headers: config.headers.clone(),
            access: Access::new(&config.tokens).map_err(|error| error.to_string())?,
            privacy: config.privacy,
            namespace: config.namespace.clone(),
        })
    }

    /// The same with other domains.
    pub(crate) fn with_domains(self, domains: Arc<Domains>) -> Self {
        Live { domains, ..self }
    }

    /// A key as logs and the audit may show it.
    pub(crate) fn shown(&self, key: &[u8]) -> String {
        privacy::shown(key, self.privacy, &self.namespace)
    }

    /// The names of the first policies, for whoever named none; nothing if there is none.
    pub(crate) fn names_of_policies(&self) -> Option<String> {
        const MAX_NAMES_LISTED: usize = 8;
        let mut names: Vec<_> = self.policies.iter().map(|policy| policy.name()).collect();
        if names.len() > MAX_NAMES_LISTED {
            names.truncate(MAX_NAMES_LISTED);
            names.push("…");
        }
        (!names.is_empty()).then(|| names.join(", "))
    }
}
