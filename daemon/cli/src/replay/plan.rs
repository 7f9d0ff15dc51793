//! The candidates of a replay, and how lines become requests.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hyper::header::HeaderName;
use tollgate::{Policies, Policy};
use tollgate_daemon::rules::{Source, Template};
use tollgate_daemon::{Config, read_overrides};
use tollgate_replay::{Candidate, CandidatePolicy, MAX_CANDIDATES, RequestExtractor};

use super::arguments::Replay;
use super::extractors::{AlternativeCounts, ExtractContext, KeyExtractor, RuleExtractor};

/// The candidates of a replay, and how lines become requests.
pub(super) struct ReplayPlan {
    pub(super) candidates: Vec<Candidate>,
    pub(super) extractor: Box<dyn RequestExtractor>,
    /// Whether every line makes at most one plain check, unless it has an operation.
    pub(super) is_plain: bool,
    /// The headers that the extractor reads.
    pub(super) headers: Vec<HeaderName>,
    /// How many lines have the key from each alternative of --key.
    pub(super) alternatives: Arc<AlternativeCounts>,
    /// A candidate with a concurrent limit, which needs operations in the log.
    pub(super) concurrent: Option<String>,
    /// The configuration, for its store settings.
    pub(super) config: Option<Config>,
}

impl ReplayPlan {
    /// Rejects concurrent limits for a log without operations, which does not contain the end of
    /// requests.
    pub(super) fn reject_concurrent(&self) -> Result<()> {
        let Some(name) = &self.concurrent else { return Ok(()) };
        bail!(
            "{name:?} is a concurrent limit, but the log does not contain the end of requests; use \
             CSV with the operations acquire and release"
        );
    }

    pub(super) fn from_arguments(arguments: &Replay) -> Result<Self> {
        let mut config = arguments.limits.config.as_deref().map(Config::load).transpose()?;
        if let Some(config) = &mut config {
            read_overrides_files(config)?;
        }
        let template = arguments.limits.key.as_deref().map(template).transpose()?;
        let headers = match (&config, arguments.limits.rules) {
            (Some(config), true) => rule_headers(config),
            _ => template.iter().flat_map(template_headers).collect(),
        };
        let context = ExtractContext {
            ipv6_prefix: config.as_ref().map_or_else(Default::default, |config| config.ipv6_prefix),
            headers: headers.clone(),
            jwt: config.as_ref().and_then(|config| config.jwt.clone()),
        };
        if let (Some(config), true) = (&config, arguments.limits.rules) {
            let extractor =
                RuleExtractor::new(config.rules.clone(), config.policies.clone(), context);
            let file = arguments.limits.config.as_deref().context("--rules needs --config FILE")?;
            return Ok(ReplayPlan {
                candidates: vec![extractor.candidate(format!("rules of {}", file.display()))],
                is_plain: extractor.is_plain(),
                extractor: Box::new(extractor),
                headers,
                alternatives: Arc::default(),
                concurrent: None,
                config: Some(config.clone()),
            });
        }
        let (candidates, concurrent) = candidates(arguments, config.as_ref())?;
        let alternatives = Arc::new(AlternativeCounts::new(template.as_ref()));
        let extractor = KeyExtractor { template, context, alternatives: Arc::clone(&alternatives) };
        Ok(ReplayPlan {
            candidates,
            extractor: Box::new(extractor),
            is_plain: true,
            headers,
            alternatives,
            concurrent,
            config,
        })
    }
}

fn template(text: &str) -> Result<Template> {
    let template = Template::parse(text).map_err(|error| anyhow!("--key {text:?}: {error}"))?;
    // A template without a source is the same key for all lines, which is a likely mistake.
    let is_constant = template.sources().next().is_none();
    if is_constant && Template::parse(&format!("{{{text}}}")).is_ok() {
        bail!("--key {text:?}: use {{{text}}}; without the braces all lines have the same key");
    }
    Ok(template)
}

/// The candidates of --limit and --policy, and the name of one with a concurrent limit.
fn candidates(
    arguments: &Replay,
    config: Option<&Config>,
) -> Result<(Vec<Candidate>, Option<String>)> {
    let (mut all, mut concurrent) = (Vec::new(), None);
    for text in &arguments.limits.limits {
        let policy: Policy = text.parse().map_err(|error| anyhow!("--limit {text:?}: {error}"))?;
        if policy.has_concurrent() {
            concurrent.get_or_insert_with(|| text.clone());
        }
        // The name is the argument, which may differ from the canonical text.
        all.push(Candidate::new(text.trim(), policy));
    }
    for name in &arguments.limits.policies {
        let config = config.context("--policy needs --config FILE")?;
        let mut variants = config
            .policies
            .variants(name)
            .map_err(|error| anyhow!("--policy {name:?}: {error}"))?;
        let first = variants.next().context("a policy has a variant")?.clone();
        let others: Vec<_> = variants.collect();
        if first.has_concurrent() || others.iter().any(|other| other.has_concurrent()) {
            concurrent.get_or_insert_with(|| name.clone());
        }
        all.push(match others.is_empty() {
            true => Candidate::new(name, first),
            false => with_overrides(&config.policies, name),
        });
    }
    match all.len() {
        0 => bail!(
            "no limits to try; use --limit \"10/s burst 20\", or --config FILE with --policy NAME \
             or --rules"
        ),
        count if count > MAX_CANDIDATES => {
            bail!("{count} limits to compare are too many; at most {MAX_CANDIDATES}")
        }
        _ => Ok((all, concurrent)),
    }
}

fn with_overrides(policies: &Policies, name: &str) -> Candidate {
    let (policies, policy) = (policies.clone(), name.to_owned());
    #[expect(clippy::expect_used, reason = "the caller has found the policy; no tier is named")]
    let resolve = move |_: u32, key: &[u8]| {
        policies.resolve(&policy, key, None).expect("a policy of the configuration").clone()
    };
    let policy = CandidatePolicy::PerKey(Box::new(resolve));
    Candidate { name: name.to_owned(), policy, policy_names: Vec::new() }
}

pub(crate) fn read_overrides_files(config: &mut Config) -> Result<()> {
    for file in std::mem::take(&mut config.overrides_files) {
        let rows = read_overrides(&file.path).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            anyhow!("{}", errors.join("\n"))
        })?;
        config.policies.set_additional_overrides(&file.policy, &rows)?;
    }
    Ok(())
}

fn template_headers(template: &Template) -> Vec<HeaderName> {
    let header = |source: &Source| match source {
        Source::Header(name) => Some(name.clone()),
        Source::Cookie(_) => Some(hyper::header::COOKIE),
        Source::Jwt(_) => Some(hyper::header::AUTHORIZATION),
        _ => None,
    };
    template.sources().filter_map(header).collect()
}

fn rule_headers(config: &Config) -> Vec<HeaderName> {
    let mut all = Vec::new();
    for rule in &config.rules.rules {
        all.extend(rule.matches.headers.iter().map(|header| header.name().clone()));
        for check in &rule.checks {
            all.extend(template_headers(&check.key));
            all.extend(check.tier.iter().flat_map(template_headers));
        }
    }
    all.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    all.dedup();
    all
}
