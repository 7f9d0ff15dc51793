//! The active configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate::Policies;
use tollgate_descriptors::Domains;
use tollgate_insight::TrackTable;
use tollgate_rules::{HostPattern, Ipv6Prefix, Jwt, Networks, Rules};

use crate::access::Access;
use crate::config::{Bounds, Config, Envoy, FailureMode, HeaderStyle, Privacy, Track};
use crate::counters::PolicyCounterTable;
use crate::error::Error;
use crate::parameter::Parameter;
use crate::privacy;

/// The part of the configuration that a reload replaces as a whole. Each request uses one version
/// from beginning to end.
#[derive(Clone, Debug)]
pub struct ActiveConfig {
    /// The policies by name.
    pub policies: Policies,
    /// The counters of these policies; filled in when the configuration becomes active.
    pub(crate) counters: PolicyCounterTable,
    /// What these policies track about their keys; filled in when the configuration becomes active.
    pub(crate) tracking: TrackTable,
    tracks: BTreeMap<String, Track>,
    /// Limits on requests and connections.
    pub bounds: Bounds,
    /// The rules of forward auth.
    pub rules: Rules,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Networks,
    /// How much of an IPv6 address identifies a client.
    pub ipv6_prefix: Ipv6Prefix,
    /// The keys and rules that verify the JWTs of clients.
    pub jwt: Option<Jwt>,
    /// Names under which clients reach a listener of HTTP on a loopback address.
    pub hosts: Vec<HostPattern>,
    /// The settings of Envoy's rate limit service.
    pub envoy: Envoy,
    /// The descriptor rules, from files or, in their place, from a control plane.
    pub domains: Arc<Domains>,
    /// The reply to `CL.THROTTLE` while the store is unavailable.
    pub throttle_on_store_error: FailureMode,
    /// The styles of rate limit headers.
    pub headers: Vec<HeaderStyle>,
    /// The tokens and their rights.
    pub access: Access,
    privacy: Privacy,
    namespace: String,
}

impl ActiveConfig {
    /// Builds the active configuration, and reads the files of tokens.
    ///
    /// # Errors
    /// A token cannot be used.
    pub fn new(config: &Config) -> Result<Self, String> {
        Ok(ActiveConfig {
            policies: config.policies.clone(),
            counters: PolicyCounterTable::default(),
            tracking: TrackTable::default(),
            tracks: config.tracks.clone(),
            bounds: config.limits.clone(),
            rules: config.rules.clone(),
            trusted_proxies: config.trusted_proxies.clone(),
            ipv6_prefix: config.ipv6_prefix,
            jwt: config.jwt.clone(),
            hosts: config.listen.hosts.clone(),
            envoy: config.envoy.clone(),
            domains: Arc::clone(&config.domains),
            throttle_on_store_error: config.throttle_on_store_error,
            headers: config.headers.clone(),
            access: Access::new(&config.tokens)
                .map_err(|error| error.to_string())?
                .with_operators(config.operators),
            privacy: config.privacy,
            namespace: config.namespace.clone(),
        })
    }

    /// Replaces the domains.
    #[must_use]
    pub(crate) fn with_domains(self, domains: Arc<Domains>) -> Self {
        ActiveConfig { domains, ..self }
    }

    /// Formats a key for logs and the audit, as the privacy level permits.
    #[must_use]
    pub fn display_key(&self, key: &[u8]) -> String {
        privacy::display_key(key, self.privacy, &self.namespace)
    }

    /// Checks that a prefix of keys reveals no more of them than may be shown: with it, a client could
    /// find out a key character by character.
    ///
    /// # Errors
    /// The privacy level hides what the prefix would reveal.
    pub fn check_prefix(&self, prefix: &[u8]) -> Result<(), Error> {
        let Some(max) = privacy::max_prefix(self.privacy) else { return Ok(()) };
        if String::from_utf8_lossy(prefix).chars().count() <= max {
            return Ok(());
        }
        let detail = match max {
            0 => "privacy is hashed, so that no prefix can match; leave prefix out".to_owned(),
            max => {
                format!("privacy is masked, and shows {max} characters of a key; shorten prefix")
            }
        };
        Err(Error::bad_request(detail).with_parameter(Parameter::Prefix))
    }

    /// How much of a key is shown.
    #[must_use]
    pub fn privacy(&self) -> Privacy {
        self.privacy
    }

    /// What policies track, by name.
    pub(crate) fn tracks(&self) -> &BTreeMap<String, Track> {
        &self.tracks
    }

    /// The names of the first policies, for a message; absent if there are none.
    pub(crate) fn policy_names(&self) -> Option<String> {
        first_names(self.policies.iter().map(|policy| policy.name()))
    }
}

/// The first of these names, for a message; absent if there are none.
pub(crate) fn first_names<'n>(names: impl Iterator<Item = &'n str>) -> Option<String> {
    const MAX_NAMES: usize = 8;
    let mut names: Vec<_> = names.take(MAX_NAMES + 1).collect();
    if names.len() > MAX_NAMES {
        names.truncate(MAX_NAMES);
        names.push("…");
    }
    (!names.is_empty()).then(|| names.join(", "))
}
