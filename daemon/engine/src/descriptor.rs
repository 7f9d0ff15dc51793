//! Resolving descriptors of Envoy's rate limit service, as operators write them.

use std::borrow::Cow;

use tollgate::Policy;
use tollgate_descriptors::{Limits, Lookup, Matched, RuleRef, key};

use crate::MAX_QUOTED_LEN;
use crate::access::Principal;
use crate::active::{ActiveConfig, first_names};
use crate::call::PolicySelector;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, ErrorValue};
use crate::parameter::Parameter;
use crate::resolution;

/// Resolves the descriptor of a domain to the policy of its rule and the key of its counter. A
/// domain that is not configured is the name of a policy, as in requests of Envoy.
pub(crate) fn resolve<'a>(
    engine: &Engine,
    active: &'a ActiveConfig,
    principal: Principal<'_>,
    domain: &str,
    descriptor: &str,
) -> Result<(Cow<'a, Policy>, Vec<u8>), Error> {
    let entries = parse(domain, descriptor)?;
    let entries: Vec<(&str, &str)> =
        entries.iter().map(|(key, value)| (&**key, &**value)).collect();
    let invalid = |detail: String| {
        Error::bad_request(detail)
            .with_parameter(Parameter::Descriptor)
            .with_value(ErrorValue::Text(descriptor.to_owned()))
    };
    let max_len = active.bounds.key_bytes;
    let too_long = |len: usize| {
        invalid(format!(
            "descriptor makes a key of {len} bytes, more than the maximum of {max_len}"
        ))
    };
    let (policy, key) = match active.domains.find(domain, &entries) {
        Lookup::Rule(Matched { rule, key, .. }) => {
            let RuleRef::Configured(rule) = rule else {
                unreachable!("no limit was supplied that overrides a configured one")
            };
            let policy = match &rule.limits {
                Limits::Policy(policy) => policy,
                Limits::Unlimited => {
                    let detail = "the rule of this descriptor is unlimited, and counts nothing";
                    return Err(invalid(detail.to_owned()));
                }
                Limits::DenyAll => {
                    let detail = "the rule of this descriptor admits nothing, and counts nothing";
                    return Err(invalid(detail.to_owned()));
                }
            };
            principal.authorize_policy(policy.name())?;
            (Cow::Borrowed(policy), key)
        }
        Lookup::NoRule => {
            let mut policies = active.domains.policies();
            if let Some((_, policy)) = policies.find(|(name, _)| *name == domain) {
                principal.authorize_policy(policy.name())?;
            }
            let rules = first_names(active.domains.rules(domain)).unwrap_or_default();
            let detail = format!(
                "no rule of the domain {domain:?} matches this descriptor; its rules are {rules}"
            );
            return Err(invalid(detail));
        }
        Lookup::KeyTooLong(len) => return Err(too_long(len)),
        Lookup::UnknownDomain if active.policies.get(domain).is_ok() => {
            let key = key(None, &entries, &[], None).map_err(too_long)?;
            let selector = PolicySelector { policy: Some(domain), ..PolicySelector::default() };
            (resolution::resolve(engine, active, principal, selector, key.as_bytes())?, key)
        }
        Lookup::UnknownDomain => {
            // The message lists the domains, which only a client that may use them may see.
            principal.authorize_policy(domain)?;
            return Err(unknown_domain(active, domain));
        }
    };
    if key.len() > max_len {
        return Err(too_long(key.len()));
    }
    Ok((policy, key.into_bytes()))
}

#[cold]
fn unknown_domain(active: &ActiveConfig, domain: &str) -> Error {
    let remedy = first_names(active.domains.domains()).map_or_else(
        || "none is configured; set envoy.config, or send policy and key".to_owned(),
        |names| format!("the domains are {names}"),
    );
    let shown: String = domain.chars().take(MAX_QUOTED_LEN).collect();
    Error::new(ErrorKind::UnknownPolicy, format!("there is no domain {shown:?}; {remedy}"))
        .with_parameter(Parameter::Domain)
        .with_value(ErrorValue::Text(shown))
}

/// Parses entries such as `user=7;path=/a`. `%25`, `%3B` and `%3D` are `%`, `;` and `=`, and a key
/// `%` is empty. The key of the counter in logs has the same form, and may begin with the domain.
fn parse(domain: &str, descriptor: &str) -> Result<Vec<(String, String)>, Error> {
    let invalid = |detail: String| {
        Error::bad_request(detail)
            .with_parameter(Parameter::Descriptor)
            .with_value(ErrorValue::Text(descriptor.to_owned()))
    };
    if descriptor.is_empty() {
        let detail = "descriptor is empty; write its entries, such as remote_address=10.0.0.1";
        return Err(invalid(detail.to_owned()));
    }
    let mut entries = Vec::new();
    for (index, entry) in descriptor.split(';').enumerate() {
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        let is_empty_key = key == "%";
        let key = if is_empty_key { Some(String::new()) } else { unescape(key) };
        let parsed = key.zip(unescape(value));
        let Some((key, value)) = parsed else {
            let detail = format!(
                "in descriptor, {entry:?} has a % that begins none of %25, %3B and %3D; write % as %25"
            );
            return Err(invalid(detail));
        };
        match (index, &*key) {
            (0, "") if value == domain => {}
            (_, "") if !is_empty_key => {
                let detail = format!(
                    "in descriptor, {entry:?} has no key; write entries as key=value, separated by ;"
                );
                return Err(invalid(detail));
            }
            _ => entries.push((key, value)),
        }
    }
    Ok(entries)
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        plain.push(match code.to_ascii_uppercase().as_str() {
            "25" => '%',
            "3B" => ';',
            "3D" => '=',
            _ => return None,
        });
        plain.push_str(rest);
    }
    Some(plain)
}
