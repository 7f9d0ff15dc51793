//! Builds a domain from parsed files, and rejects everything that envoyproxy/ratelimit rejects.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_algorithms::parse_limits;

use super::ReadOptions;
use super::config::{DescriptorConfig, LimitConfig};
use super::domain::{Domain, Node, Wildcard};
use super::error::DescriptorConfigError;
use super::limits::{OverrideRules, PolicyFactory};
use super::rule::{Limits, Rule};
use super::unit::Unit;

/// The maximum length of the composite keys that lead to a descriptor, in bytes: that of a
/// request's key.
const MAX_PATH_BYTES: usize = 65_536;

/// Builds a domain from one or more files.
#[derive(Debug)]
pub(super) struct Builder {
    name: String,
    policies: PolicyFactory,
    nodes: Vec<Node>,
    /// Limits by their parameters, so that rules with equal limits share a policy.
    limits: HashMap<(u32, Unit, bool), Limits>,
}

/// The line, if known, and the message.
type Mistake = (Option<usize>, String);

impl Builder {
    pub(super) fn new(name: String, options: &ReadOptions) -> Self {
        let policies = PolicyFactory::new(&name, options);
        let root = Node { path: name.as_str().into(), ..Node::default() };
        Builder { name, policies, nodes: vec![root], limits: HashMap::new() }
    }

    /// Adds the descriptors of a file.
    pub(super) fn add(
        &mut self,
        file: &str,
        descriptors: Vec<DescriptorConfig>,
    ) -> Result<(), DescriptorConfigError> {
        let added = self.add_all(0, descriptors);
        added.map_err(|(line, message)| DescriptorConfigError::new(file, line, message))
    }

    pub(super) fn finish(self) -> Domain {
        let prefixes_keys = !self.policies.identifies(&self.name);
        let overrides = OverrideRules::new(self.policies);
        Domain { name: self.name.into(), prefixes_keys, nodes: self.nodes, overrides }
    }

    /// Adds descriptors below the node with this index. The parsers bound the depth.
    fn add_all(
        &mut self,
        parent: usize,
        descriptors: Vec<DescriptorConfig>,
    ) -> Result<(), Mistake> {
        for mut descriptor in descriptors {
            let inner = std::mem::take(&mut descriptor.descriptors);
            let index = self.add_one(parent, descriptor)?;
            self.add_all(index, inner)?;
        }
        Ok(())
    }

    fn add_one(&mut self, parent: usize, descriptor: DescriptorConfig) -> Result<usize, Mistake> {
        let line = descriptor.line;
        let mistake = |message: String| (line, message);
        if descriptor.key.is_empty() {
            return Err(mistake("descriptor has empty key".to_owned()));
        }
        let composite = match &*descriptor.value {
            "" => descriptor.key.clone(),
            value => format!("{}_{value}", descriptor.key),
        };
        let index = self.nodes.len();
        let above = &mut self.nodes[parent];
        let path = format!("{}.{composite}", above.path);
        if path.len() > MAX_PATH_BYTES {
            return Err(mistake(format!(
                "the path of a descriptor is longer than {MAX_PATH_BYTES} bytes, the maximum \
                 length of a key; shorten keys and values"
            )));
        }
        if above.children.contains_key(composite.as_bytes()) {
            return Err(mistake(format!("duplicate descriptor composite key '{path}'")));
        }
        above.children.insert(composite.as_bytes().into(), index);
        let wildcard = Wildcard::parse(&composite);
        let lacks_wildcard = descriptor.share_threshold && wildcard.is_none();
        above.wildcards.extend(wildcard.map(|wildcard| (wildcard, index)));
        let (value_to_metric, share_threshold) =
            (descriptor.value_to_metric, descriptor.share_threshold);
        let rule = self.rule(descriptor)?;
        if lacks_wildcard {
            return Err(mistake(format!(
                "share_threshold can only be used with wildcard values (containing '*'), but found \
                 key '{composite}'"
            )));
        }
        self.nodes.push(Node {
            path: path.into(),
            composite: composite.into(),
            rule,
            value_to_metric,
            share_threshold,
            ..Node::default()
        });
        Ok(index)
    }

    fn rule(&mut self, descriptor: DescriptorConfig) -> Result<Option<Rule>, Mistake> {
        let Some(limit) = descriptor.rate_limit else { return Ok(None) };
        let (shadow, quota) = (descriptor.shadow_mode, descriptor.quota_mode);
        let policy_shadow = self.policies.is_shadow(shadow, quota);
        let (limits, unit, requests_per_unit) = if limit.has_texts {
            self.notation_limits(&limit, policy_shadow)?
        } else {
            let unit = parse_unit(&limit).map_err(|error| (limit.line, error))?;
            (
                self.per_unit(limit.requests_per_unit, unit, policy_shadow),
                unit,
                limit.requests_per_unit,
            )
        };
        check_replaces(&limit).map_err(|error| (limit.line, error))?;
        Ok(Some(Rule {
            limits,
            requests_per_unit,
            unit,
            name: Some(limit.name).filter(|name| !name.is_empty()),
            replaces: limit.replaces,
            shadow,
            quota,
            detailed_metric: descriptor.detailed_metric,
            metadata: descriptor.metadata.map(Arc::new),
        }))
    }

    fn per_unit(&mut self, count: u32, unit: Option<Unit>, shadow: bool) -> Limits {
        let Some(unit) = unit else { return Limits::Unlimited };
        let limits = self.limits.entry((count, unit, shadow));
        limits.or_insert_with(|| self.policies.per_unit(count, unit, shadow)).clone()
    }

    /// The policy for limits in Tollgate's notation, with the unit and count of the first limit.
    fn notation_limits(
        &self,
        config: &LimitConfig,
        shadow: bool,
    ) -> Result<(Limits, Option<Unit>, u32), Mistake> {
        if config.has_numbers {
            let message = "limit cannot be combined with unit, requests_per_unit or unlimited; use \
                           one of them";
            return Err((config.line, extension_message(message)));
        }
        let mut limits = Vec::new();
        for (text, line) in &config.texts {
            let parsed = parse_limits(text);
            limits.extend(parsed.map_err(|error| (*line, extension_message(&error.to_string())))?);
        }
        let first = limits.first().map(|limit| *limit.spec());
        let policy = self.policies.combined(limits, shadow);
        let policy = policy.map_err(|error| (config.line, extension_message(&error)))?;
        let unit = first.and_then(|first| Unit::from_window(first.window));
        // The number is only reported; larger limits saturate it.
        let count = first.map_or(0, |first| u32::try_from(first.count).unwrap_or(u32::MAX));
        Ok((Limits::Policy(policy), unit, count))
    }
}

/// The message about an extension, with its field. Messages of envoyproxy/ratelimit are reproduced
/// unchanged.
fn extension_message(message: &str) -> String {
    format!("rate_limit.limit: {message}")
}

/// The unit, or `None` if unlimited.
fn parse_unit(limit: &LimitConfig) -> Result<Option<Unit>, String> {
    match (limit.unlimited, Unit::from_name(&limit.unit)) {
        (true, Some(_)) => Err("should not specify rate limit unit when unlimited".to_owned()),
        (false, None) => Err(format!("invalid rate limit unit '{}'", limit.unit)),
        (_, unit) => Ok(unit),
    }
}

fn check_replaces(limit: &LimitConfig) -> Result<(), String> {
    for name in &limit.replaces {
        if name.is_empty() {
            return Err("should not have an empty replaces entry".to_owned());
        }
        if *name == limit.name {
            return Err("replaces should not contain name of same descriptor".to_owned());
        }
    }
    Ok(())
}
