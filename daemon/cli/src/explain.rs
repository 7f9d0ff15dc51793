//! `tollgate explain`: the rule, keys and limits that a configuration gives a request.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tollgate::{Policies, Timestamp};
use tollgate_daemon::rules::{Client, Facts, KeyError, MatchedCheck, OnNoRule, RuleOutcome};
use tollgate_daemon::{Layers, check_files};

use crate::arguments::{Explain, Form};
use crate::output;
use crate::replay::read_overrides_files;

/// A check as a daemon would make it.
struct Explanation {
    policy: String,
    key: String,
    limits: String,
    /// Where the limits come from.
    source: String,
}

pub(crate) fn run(arguments: &Explain) -> Result<ExitCode> {
    let layers = Layers::new().file(&arguments.config).environment(std::env::vars_os());
    let loaded = layers.partial()?;
    check_files(&loaded)?;
    let mut config = loaded.config;
    read_overrides_files(&mut config)?;
    let uri: Uri = arguments.url.parse().with_context(|| {
        format!("{:?} is neither a path nor a URL; write one such as /api/x", arguments.url)
    })?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let headers = headers(&arguments.headers)?;
    let mut facts = Facts::new(&arguments.method, target.as_bytes(), &headers);
    let host = uri.host().or_else(|| headers.get("host").and_then(|host| host.to_str().ok()));
    facts.host = host.ok_or("the request has no host; write a URL such as http://HOST/PATH");
    facts.client = arguments.address.map_or(Client::Unknown, Client::Known);
    facts.ipv6_prefix = config.ipv6_prefix;
    facts.jwt = config.jwt.as_ref();
    facts.now = now()?;
    let rules = config.rules.matching(&facts).map_err(with_remedy)?;
    let outcome = config.rules.evaluate(&facts, config.limits.key_bytes).map_err(with_remedy)?;
    let (outcome, checks) = match outcome {
        RuleOutcome::Checks(checks) if checks.is_empty() => {
            ("admitted: all checks are skipped".to_owned(), Vec::new())
        }
        RuleOutcome::Checks(checks) => {
            let checks = checks.iter().map(|check| explain(&config.policies, check));
            ("checked".to_owned(), checks.collect::<Result<_>>()?)
        }
        RuleOutcome::Deny(reason) => (format!("denied: {reason}"), Vec::new()),
        RuleOutcome::NoRule(on_no_rule) => {
            let result = match on_no_rule {
                OnNoRule::Pass => "admitted",
                OnNoRule::Deny => "denied",
            };
            let reason = match config.rules.rules.is_empty() {
                true => "the configuration has no rules for forward auth",
                false => "no rule matches",
            };
            (format!("{result}: {reason}"), Vec::new())
        }
    };
    let text = match arguments.output {
        Form::Json => {
            json!({ "rules": rules, "outcome": outcome, "checks": objects(&checks) }).to_string()
                + "\n"
        }
        Form::Text => text(&rules, &outcome, &checks),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The error, with the option that avoids it.
fn with_remedy(error: KeyError) -> anyhow::Error {
    match error {
        KeyError::Address(_) => {
            anyhow!(
                "the rule needs the client's address; add --address, such as --address 203.0.113.7"
            )
        }
        error => error.into(),
    }
}

fn headers(lines: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let parsed = line.split_once(':').and_then(|(name, value)| {
            let name: HeaderName = name.trim().parse().ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        let (name, value) =
            parsed.ok_or_else(|| anyhow!("{line:?} is no header; write NAME: VALUE"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

#[expect(clippy::disallowed_methods, reason = "the expiry of a token; no limit depends on it")]
fn now() -> Result<Timestamp> {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(Timestamp::from_micros(elapsed.as_micros().try_into()?))
}

fn explain(policies: &Policies, check: &MatchedCheck<'_>) -> Result<Explanation> {
    let (name, key) = (check.policy, &*check.key);
    let tier = check.tier.as_deref().map(String::from_utf8_lossy);
    let without_tier = policies.resolve(name, key, None)?;
    let with_tier = tier.as_deref().map(|tier| (tier, policies.resolve(name, key, Some(tier))));
    let has_override = !std::ptr::eq(without_tier, policies.get(name)?);
    let (policy, source) = match with_tier {
        _ if has_override => (without_tier, "of the key's override".to_owned()),
        Some((tier, Ok(policy))) => (policy, format!("of the tier {tier:?}")),
        Some((tier, Err(_))) => {
            (without_tier, format!("of the policy, which has no tier {tier:?}"))
        }
        None => (without_tier, "of the policy".to_owned()),
    };
    let limits = match policy.listed(key) {
        Some(tollgate::Listed::Allow) => "always admitted".to_owned(),
        Some(tollgate::Listed::Deny) => "always denied".to_owned(),
        None => policy.to_string(),
    };
    let key = String::from_utf8_lossy(key).escape_debug().to_string();
    Ok(Explanation { policy: name.to_owned(), key, limits, source })
}

fn objects(checks: &[Explanation]) -> Vec<Value> {
    let object = |Explanation { policy, key, limits, source }: &Explanation| json!({ "policy": policy, "key": key, "limits": limits, "source": source });
    checks.iter().map(object).collect()
}

fn text(rules: &[usize], outcome: &str, checks: &[Explanation]) -> String {
    let rules: Vec<_> = rules.iter().map(|rule| format!("rules[{rule}]  ")).collect();
    let mut text = format!("{}{outcome}\n", rules.concat());
    for Explanation { policy, key, limits, source } in checks {
        text.push_str(&format!("  {policy} {key}: {limits}, {source}\n"));
    }
    text
}
