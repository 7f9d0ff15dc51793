//! `rules`, and what they need of the rest: the policies that they name, `default`,
//! `trusted_proxies`, `ipv6_prefix`.

use tollgate::{Cost, Policies};

use crate::fields::{Broken, Fields, Meaning};
use crate::schema::Value;
use tollgate_document::did_you_mean;
use tollgate_document::{Body, Name};
use tollgate_rules::{
    HeaderMatcher, HostPattern, Ipv6Prefix, Match, MethodName, Networks, OnMissing, OnNoRule,
    PathPattern, Rule, RuleCheck, Rules, Template,
};

impl Meaning for OnMissing {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word(word) => OnMissing::parse(word).ok(),
            _ => None,
        }
    }
}

impl Meaning for OnNoRule {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word(word) => OnNoRule::parse(word).ok(),
            _ => None,
        }
    }
}

impl Meaning for Template {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Template::parse(&text).ok(),
            _ => None,
        }
    }
}

impl Meaning for Ipv6Prefix {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Number(bits) => Ipv6Prefix::parse(&bits.to_string()).ok(),
            _ => None,
        }
    }
}

pub(super) fn trusted_proxies(fields: &Fields<'_>) -> Result<Networks, Broken> {
    let mut networks = Networks::default();
    for list in fields.list("trusted_proxies")? {
        networks.add(&list.text).map_err(|_| Broken)?;
    }
    Ok(networks)
}

pub(super) fn read(root: &Fields<'_>, policies: Option<&Policies>) -> Result<Rules, Broken> {
    let names: Vec<&Name> = root.named("policies").into_iter().map(|(name, _)| name).collect();
    let written = root.sections("rules")?;
    // All are read before the first that is broken ends it.
    let rules: Vec<_> = written.iter().map(|x| rule(x, &names)).collect();
    let rules: Vec<_> = rules.into_iter().collect::<Result<_, _>>()?;
    let rules = Rules { rules, on_no_rule: root.get("default")? };
    let Some(policies) = policies else { return Ok(rules) };
    rules.check(policies).map_err(|error| {
        let Some(rule) = written.get(error.rule) else { return Broken };
        let checks = checks(rule).unwrap_or_default();
        match error.check.and_then(|check| checks.get(check)) {
            Some(check) => check.report("policy", error.remedy),
            None => rule.report("checks", error.remedy),
        }
    })?;
    Ok(rules)
}

fn rule(fields: &Fields<'_>, policies: &[&Name]) -> Result<Rule, Broken> {
    let matches = fields.section("match").and_then(|section| matches(&section));
    let checks = checks(fields).map(|all| {
        // Each is read, so that the mistakes of all are found.
        all.iter().map(|x| check(x, policies)).collect::<Vec<_>>()
    });
    Ok(Rule { matches: matches?, checks: checks?.into_iter().collect::<Result<_, _>>()? })
}

/// The fields of each check: those of the rule itself, where it is short for one.
fn checks<'a>(fields: &Fields<'a>) -> Result<Vec<Fields<'a>>, Broken> {
    let short = ["policy", "key", "tier", "cost", "on_missing"];
    let short = short.into_iter().find(|short| fields.said(short).is_some());
    match (fields.said("checks"), short) {
        (Some(_), Some(name)) => {
            let message = "it is short for one check, and there are checks: write it there";
            Err(fields.report(name, message))
        }
        (Some(_), None) => {
            let checks = fields.sections("checks")?;
            if checks.is_empty() {
                return Err(fields.report("checks", "write one check at least"));
            }
            Ok(checks)
        }
        (None, Some(_)) => Ok(vec![fields.clone()]),
        (None, None) => {
            let message = "a rule needs checks, or policy and key for one check";
            Err(fields.report("checks", message))
        }
    }
}

fn matches(fields: &Fields<'_>) -> Result<Match, Broken> {
    let headers = fields.named("headers").into_iter().map(|(name, node)| match &node.body {
        Body::Text(value) => HeaderMatcher::new(&name.text, value).map_err(|_| Broken),
        _ => Err(Broken),
    });
    Ok(Match {
        paths: list(fields, "path", PathPattern::parse)?,
        methods: list(fields, "method", MethodName::parse)?,
        hosts: list(fields, "host", HostPattern::parse)?,
        headers: headers.collect::<Result<_, _>>()?,
    })
}

/// A list of texts. What is wrong with one was said.
fn list<T>(
    fields: &Fields<'_>,
    name: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Broken> {
    fields.list(name)?.iter().map(|list| read(&list.text).map_err(|_| Broken)).collect()
}

fn check(fields: &Fields<'_>, policies: &[&Name]) -> Result<RuleCheck, Broken> {
    let policy = policy(fields, policies);
    let key = match fields.get::<Option<Template>>("key")? {
        Some(key) => Ok(key),
        None => Err(fields.report("key", "a check needs a key, such as \"{ip}\"")),
    };
    Ok(RuleCheck {
        policy: policy?.into(),
        key: key?,
        tier: fields.get("tier")?,
        cost: Cost::new(fields.get("cost")?).ok_or(Broken)?,
        on_missing: fields.get("on_missing")?,
    })
}

/// The name of a policy, which there must be.
fn policy(fields: &Fields<'_>, policies: &[&Name]) -> Result<String, Broken> {
    let Some(name) = fields.get::<Option<String>>("policy")? else {
        return Err(fields.report("policy", "a check needs a policy, by its name"));
    };
    if policies.iter().any(|policy| policy.text == name) {
        return Ok(name);
    }
    let hint = match policies.len() {
        0 => Some("there is none at all: write it under policies".to_owned()),
        _ => did_you_mean(&name, policies.iter().map(|policy| &*policy.text)),
    };
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Err(fields.report("policy", format!("there is no policy {name:?}{hint}")))
}
