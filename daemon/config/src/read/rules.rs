//! `rules`, `default`, `trusted_proxies` and `ipv6_prefix`.

use tollgate::{Cost, Policies};

use crate::fields::{FromValue, Invalid, SectionReader};
use crate::schema::Value;
use tollgate_document::{Body, Name, did_you_mean};
use tollgate_rules::{
    HeaderMatcher, HostPattern, Ipv6Prefix, Match, MethodName, Networks, OnMissing, OnNoRule,
    PathPattern, Rule, RuleCheck, Rules, Template,
};

impl FromValue for OnMissing {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Keyword(word) => OnMissing::parse(word).ok(),
            _ => None,
        }
    }
}

impl FromValue for OnNoRule {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Keyword(word) => OnNoRule::parse(word).ok(),
            _ => None,
        }
    }
}

impl FromValue for Template {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Template::parse(&text).ok(),
            _ => None,
        }
    }
}

impl FromValue for Ipv6Prefix {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Number(bits) => Ipv6Prefix::parse(&bits.to_string()).ok(),
            _ => None,
        }
    }
}

pub(super) fn trusted_proxies(fields: &SectionReader<'_>) -> Result<Networks, Invalid> {
    let mut networks = Networks::default();
    for list in fields.list("trusted_proxies")? {
        networks.add(&list.text).map_err(|_| Invalid)?;
    }
    Ok(networks)
}

pub(super) fn read(
    root: &SectionReader<'_>,
    policies: Option<&Policies>,
) -> Result<Rules, Invalid> {
    let names: Vec<&Name> = root.named("policies").into_iter().map(|(name, _)| name).collect();
    let readers = root.sections("rules")?;
    // All rules are read, so that all mistakes are found.
    let rules: Vec<_> = readers.iter().map(|reader| rule(reader, &names)).collect();
    let rules: Vec<_> = rules.into_iter().collect::<Result<_, _>>()?;
    let rules = Rules { rules, on_no_rule: root.get("default")? };
    let Some(policies) = policies else { return Ok(rules) };
    rules.check(policies).map_err(|error| {
        let Some(rule) = readers.get(error.rule) else { return Invalid };
        let Ok(checks) = checks(rule) else { return Invalid };
        match error.check.and_then(|check| checks.get(check)) {
            Some(check) => check.report("policy", error.message),
            None => rule.report("checks", error.message),
        }
    })?;
    Ok(rules)
}

fn rule(fields: &SectionReader<'_>, policies: &[&Name]) -> Result<Rule, Invalid> {
    let matches = fields.section("match").and_then(|section| matches(&section));
    let checks = checks(fields).map(|all| {
        // All checks are read, so that all mistakes are found.
        all.iter().map(|x| check(x, policies)).collect::<Vec<_>>()
    });
    Ok(Rule { matches: matches?, checks: checks?.into_iter().collect::<Result<_, _>>()? })
}

/// The readers of the checks: that of the rule itself if it has the fields of a single check.
fn checks<'a>(fields: &SectionReader<'a>) -> Result<Vec<SectionReader<'a>>, Invalid> {
    let short = ["policy", "key", "tier", "cost", "on_missing"];
    let short = short.into_iter().find(|short| fields.field_node(short).is_some());
    match (fields.field_node("checks"), short) {
        (Some(_), Some(name)) => {
            let message = "a rule with checks cannot have this field; move it into a check";
            Err(fields.report(name, message))
        }
        (Some(_), None) => {
            let checks = fields.sections("checks")?;
            if checks.is_empty() {
                return Err(fields.report("checks", "expected at least one check"));
            }
            Ok(checks)
        }
        (None, Some(_)) => Ok(vec![fields.clone()]),
        (None, None) => {
            let message = "a rule needs checks, or policy and key for a single check";
            Err(fields.report("checks", message))
        }
    }
}

fn matches(fields: &SectionReader<'_>) -> Result<Match, Invalid> {
    let headers = fields.named("headers").into_iter().map(|(name, node)| match &node.body {
        Body::Text(value) => HeaderMatcher::new(&name.text, value).map_err(|_| Invalid),
        _ => Err(Invalid),
    });
    Ok(Match {
        paths: list(fields, "path", PathPattern::parse)?,
        methods: list(fields, "method", MethodName::parse)?,
        hosts: list(fields, "host", HostPattern::parse)?,
        headers: headers.collect::<Result<_, _>>()?,
    })
}

/// A list of parsed texts. Invalid ones have already been reported.
fn list<T>(
    fields: &SectionReader<'_>,
    name: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Invalid> {
    fields.list(name)?.iter().map(|list| read(&list.text).map_err(|_| Invalid)).collect()
}

fn check(fields: &SectionReader<'_>, policies: &[&Name]) -> Result<RuleCheck, Invalid> {
    let policy = policy(fields, policies);
    let key = match fields.get::<Option<Template>>("key")? {
        Some(key) => Ok(key),
        None => Err(fields.report("key", "a check needs a key, such as \"{ip}\"")),
    };
    Ok(RuleCheck {
        policy: policy?.into(),
        key: key?,
        tier: fields.get("tier")?,
        cost: Cost::new(fields.get("cost")?).ok_or(Invalid)?,
        on_missing: fields.get("on_missing")?,
    })
}

/// The name of an existing policy.
fn policy(fields: &SectionReader<'_>, policies: &[&Name]) -> Result<String, Invalid> {
    let Some(name) = fields.get::<Option<String>>("policy")? else {
        return Err(fields.report("policy", "a check needs the name of a policy"));
    };
    if policies.iter().any(|policy| policy.text == name) {
        return Ok(name);
    }
    let hint = match policies.len() {
        0 => Some("no policy is defined; add one under policies".to_owned()),
        _ => did_you_mean(&name, policies.iter().map(|policy| &*policy.text)),
    };
    let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
    Err(fields.report("policy", format!("unknown policy {name:?}{hint}")))
}
