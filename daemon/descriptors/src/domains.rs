//! All domains, and the lookup of rules.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use envoy_types::pb::ratelimit::config::ratelimit::v3::RateLimitConfig;
use foldhash::fast::FixedState;
use tollgate::{Limit, Policy};

use super::build::Builder;
use super::config::{self, DomainConfig};
use super::domain::{Domain, Node};
use super::error::DescriptorConfigError;
use super::key::key;
use super::rule::{Rule, RuleRef};
use super::unit::Unit;
use super::{ReadOptions, Source, yaml};

/// All domains. The default is empty.
#[derive(Debug, Default)]
pub struct Domains {
    /// In the order of the files.
    domains: Vec<Domain>,
    by_name: HashMap<Box<str>, usize, FixedState>,
}

/// The result of looking up a request's descriptor.
#[derive(Clone, Debug)]
pub enum Lookup<'a> {
    /// The domain is not configured.
    UnknownDomain,
    /// No rule matches.
    NoRule,
    /// A rule matches.
    Rule(Matched<'a>),
    /// A rule matches, but the key would have this many bytes, which is too long.
    KeyTooLong(usize),
}

/// The rule for a request's descriptor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Matched<'a> {
    /// The rule.
    pub rule: RuleRef<'a>,
    /// The key of the counter; 1 to 65,536 bytes.
    pub key: String,
    /// The name of the metrics: `domain.key_value.key`.
    pub stat: Cow<'a, str>,
}

impl Domains {
    /// Reads files in order.
    ///
    /// # Errors
    /// A file is invalid.
    pub fn from_yaml(
        sources: &[Source],
        options: &ReadOptions,
    ) -> Result<Domains, DescriptorConfigError> {
        let read =
            |source: &Source| Ok((source.name.clone(), yaml::read(&source.name, &source.text)?));
        let configs =
            sources.iter().map(read).collect::<Result<Vec<_>, DescriptorConfigError>>()?;
        Domains::from_configs(configs, options)
    }

    /// Reads the resources of a control plane in order.
    ///
    /// # Errors
    /// A resource is invalid.
    pub fn from_xds(
        resources: &[RateLimitConfig],
        options: &ReadOptions,
    ) -> Result<Domains, DescriptorConfigError> {
        let read = |resource: &RateLimitConfig| match config::from_resource(resource) {
            Ok(config) => Ok((resource.name.clone(), config)),
            Err(message) => Err(DescriptorConfigError::new(&resource.name, None, message)),
        };
        let configs = resources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Domains::from_configs(configs, options)
    }

    fn from_configs(
        configs: Vec<(String, DomainConfig)>,
        options: &ReadOptions,
    ) -> Result<Domains, DescriptorConfigError> {
        let mut builders: Vec<Builder> = Vec::new();
        let mut by_name: HashMap<Box<str>, usize, FixedState> = HashMap::default();
        for (file, DomainConfig { domain, descriptors }) in configs {
            let refuse = |message| Err(DescriptorConfigError::new(&file, None, message));
            if domain.is_empty() {
                return refuse("config file cannot have empty domain".to_owned());
            }
            let known = by_name.get(domain.as_str()).copied();
            if known.is_some() && !options.merge_domains {
                return refuse(format!("duplicate domain '{domain}' in config file"));
            }
            let index = known.unwrap_or(builders.len());
            if known.is_none() {
                by_name.insert(domain.as_str().into(), index);
                builders.push(Builder::new(domain, options));
            }
            builders[index].add(&file, descriptors)?;
        }
        let domains = builders.into_iter().map(Builder::finish).collect();
        Ok(Domains { domains, by_name })
    }

    fn domain(&self, name: &str) -> Option<&Domain> {
        self.by_name.get(name).map(|index| &self.domains[*index])
    }

    /// The rule for a descriptor: keys with their values, in the order of the request.
    #[must_use]
    pub fn find<'a>(&'a self, domain: &str, entries: &[(&str, &str)]) -> Lookup<'a> {
        let Some(domain) = self.domain(domain) else { return Lookup::UnknownDomain };
        let Some(found) = domain.find(entries) else { return Lookup::NoRule };
        match key(domain.key_prefix(), entries, &found.shared, None) {
            Ok(key) => {
                let rule = RuleRef::Configured(found.rule);
                Lookup::Rule(Matched { rule, key, stat: found.stat })
            }
            Err(bytes) => Lookup::KeyTooLong(bytes),
        }
    }

    /// The rule for a limit that a request supplies, in a configured domain. It replaces the
    /// configured rule. It shares the counter of the configured rule if that has the same unit;
    /// otherwise the key contains the unit.
    #[must_use]
    pub fn find_with_override<'a>(
        &'a self,
        domain: &str,
        entries: &[(&str, &str)],
        requests_per_unit: u32,
        unit: Unit,
    ) -> Lookup<'a> {
        let Some(domain) = self.domain(domain) else { return Lookup::UnknownDomain };
        let rule = domain.overrides.rule(requests_per_unit, unit);
        let configured = domain.find(entries).filter(|found| found.shared.is_empty());
        let shares_counter = configured.is_some_and(|configured| configured.rule.counts_as(&rule));
        match key(domain.key_prefix(), entries, &[], (!shares_counter).then_some(unit)) {
            Ok(key) => {
                let stat = Cow::Owned(domain.override_stat(entries));
                Lookup::Rule(Matched { rule: RuleRef::Override(rule), key, stat })
            }
            Err(bytes) => Lookup::KeyTooLong(bytes),
        }
    }

    /// All rules, one per line, in the format of envoyproxy/ratelimit and in the order of the
    /// files.
    #[must_use]
    pub fn dump(&self) -> String {
        let mut text = String::new();
        for Node { path, rule, .. } in self.domains.iter().flat_map(|domain| &domain.nodes) {
            if let Some(rule) = rule {
                dump_rule(path, rule, &mut text);
            }
        }
        text
    }

    /// Whether no domain is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The names of all domains, in the order of the files.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().map(|domain| &*domain.name)
    }

    /// The rules of a domain: the composite keys that lead to each, joined by `.`, in the order of
    /// the files.
    pub fn rules<'a>(&'a self, domain: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.domain(domain).into_iter().flat_map(|domain| {
            let rules = domain.nodes.iter().filter(|node| node.rule.is_some());
            rules.filter_map(|node| node.path.get(domain.name.len() + 1..))
        })
    }

    /// The name of each domain, in the order of the files, with the number of its rules.
    pub fn rule_counts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.domains.iter().map(|domain| {
            let rules = domain.nodes.iter().filter(|node| node.rule.is_some());
            (&*domain.name, rules.count())
        })
    }

    /// The number of rules in all domains.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.rule_counts().map(|(_, rules)| rules).sum()
    }

    /// The policies of all rules that have one, with their domains.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &Policy)> {
        self.domains.iter().flat_map(|domain| {
            let rules = domain.nodes.iter().filter_map(|node| node.rule.as_ref());
            rules.filter_map(Rule::policy).map(|policy| (&*domain.name, policy))
        })
    }
}

/// A limit that starts unused for every key, because the rule of a domain has changed.
#[derive(Clone, Copy, Debug)]
pub struct UnusedLimit<'a> {
    /// The domain and the composite keys that lead to the rule, joined by `.`.
    path: &'a str,
    limit: &'a Limit,
    replaced: &'a Policy,
}

impl fmt::Display for UnusedLimit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnusedLimit { path, limit, replaced } = self;
        write!(
            f,
            "rule {path}: the limit {limit} starts unused for every key, because {replaced} has none \
             of its kind and window"
        )
    }
}

impl Domains {
    /// The limits that start unused for every key if these rules replace others, in the order of the
    /// files. The other limits of these rules keep what each key has used.
    #[must_use]
    pub fn unused_limits<'a>(&'a self, replaced: &'a Domains) -> Vec<UnusedLimit<'a>> {
        let before: HashMap<_, _> = replaced.rule_policies().collect();
        let mut unused = Vec::new();
        for (path, policy) in self.rule_policies() {
            if let Some(replaced) = before.get(path) {
                let limits = policy.unused_limits(replaced);
                unused.extend(limits.map(|limit| UnusedLimit { path, limit, replaced }));
            }
        }
        unused
    }

    /// The policies of all rules that have one, with the path of each.
    fn rule_policies(&self) -> impl Iterator<Item = (&str, &Policy)> {
        let nodes = self.domains.iter().flat_map(|domain| &domain.nodes);
        nodes.filter_map(|node| Some((&*node.path, node.rule.as_ref()?.policy()?)))
    }
}

fn dump_rule(path: &str, rule: &Rule, text: &mut String) {
    let unit = rule.unit.map_or("UNKNOWN", Unit::name);
    let Rule { requests_per_unit, shadow, quota, .. } = rule;
    text.push_str(&format!(
        "{path}: unit={unit} requests_per_unit={requests_per_unit}, shadow_mode: {shadow}, \
         quota_mode: {quota}"
    ));
    // An extension to the format.
    if let Some(policy) = rule.policy().filter(|_| !rule.is_fixed()) {
        text.push_str(&format!(", limit: {policy}"));
    }
    text.push('\n');
}
