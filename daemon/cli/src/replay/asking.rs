//! What is tried, and how a line asks it.

use anyhow::{Context, Result, anyhow, bail};
use hyper::header::HeaderName;
use tollgate::{Policies, Policy};
use tollgate_replay::{Alternative, Ask, Holds, MAX_ALTERNATIVES};
use tollgate_server::rules::{Source, Template};
use tollgate_server::{Config, read_overrides};

use super::arguments::Replay;
use super::facts::Sight;
use super::keyed::Keyed;
use super::ruled::Ruled;

/// What is tried, and how a line asks it.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) alternatives: Vec<Alternative>,
    pub(super) ask: Box<dyn AskAnything>,
    /// Whether each line asks one plain check at most, if it has no verb.
    pub(super) is_plain: bool,
    /// The headers that are asked for.
    pub(super) headers: Vec<HeaderName>,
    /// A policy that only verbs can ask, if there is one.
    pub(super) concurrent: Option<String>,
    /// How the configuration says that a store is opened, if it does.
    pub(super) config: Option<Config>,
}

/// Whoever says what a line asks.
pub(super) trait AskAnything: Ask + std::fmt::Debug {}

impl<T: Ask + std::fmt::Debug> AskAnything for T {}

impl Asking {
    /// Refuses limits of what is in flight where nothing says when a request ended.
    pub(super) fn refuse_concurrent(&self) -> Result<()> {
        let Some(name) = &self.concurrent else { return Ok(()) };
        bail!(
            "{name:?} limits what is in flight, and nothing says when a request ended; write a CSV with \
             the verbs acquire and release"
        );
    }

    pub(super) fn of(arguments: &Replay) -> Result<Self> {
        let mut config = arguments.config.as_deref().map(Config::load).transpose()?;
        if let Some(config) = &mut config {
            read_overrides_files(config)?;
        }
        let template = arguments.key.as_deref().map(template).transpose()?;
        let sources = match (&config, arguments.rules) {
            (Some(config), true) => headers_of_rules(config),
            _ => template.iter().flat_map(headers_of).collect(),
        };
        let sight = Sight {
            ipv6_prefix: config.as_ref().map(|config| config.ipv6_prefix).unwrap_or_default(),
            headers: sources,
            jwt: config.as_ref().and_then(|config| config.jwt.clone()),
        };
        let headers = sight.headers.clone();
        if let (Some(config), true) = (&config, arguments.rules) {
            let ruled = Ruled::new(config.rules.clone(), config.policies.clone(), sight);
            let alternatives = vec![ruled.alternative(name_of(arguments))];
            let is_plain = ruled.is_plain();
            let ask = Box::new(ruled);
            let concurrent = None;
            let config = Some(config.clone());
            return Ok(Asking { alternatives, ask, is_plain, headers, concurrent, config });
        }
        let (alternatives, concurrent) = alternatives(arguments, config.as_ref())?;
        let ask = Box::new(Keyed { template, sight });
        Ok(Asking { alternatives, ask, is_plain: true, headers, concurrent, config })
    }
}

fn template(text: &str) -> Result<Template> {
    let template = Template::parse(text).map_err(|error| anyhow!("--key {text:?}: {error}"))?;
    // A word is the same key for all, which whoever writes `ip` does not mean.
    let is_plain = template.sources().next().is_none();
    if is_plain && Template::parse(&format!("{{{text}}}")).is_ok() {
        bail!("--key {text:?}: write {{{text}}}; without the braces all lines have the same key");
    }
    Ok(template)
}

fn name_of(arguments: &Replay) -> String {
    let file = arguments.config.as_deref().map(|config| config.display().to_string());
    format!("rules of {}", file.unwrap_or_default())
}

/// The limits and policies that are named, and one of them that has a concurrent limit.
fn alternatives(
    arguments: &Replay,
    config: Option<&Config>,
) -> Result<(Vec<Alternative>, Option<String>)> {
    let (mut all, mut concurrent) = (Vec::new(), None);
    for text in &arguments.limits {
        let policy: Policy = text.parse().map_err(|error| anyhow!("--limit {text:?}: {error}"))?;
        if policy.has_concurrent() {
            concurrent.get_or_insert_with(|| text.clone());
        }
        // In the words of the one who asks: the canonical text may be another.
        all.push(Alternative::one(text.trim(), policy));
    }
    for name in &arguments.policies {
        let config = config.context("--policy needs --config FILE")?;
        let mut forms = config
            .policies
            .variants(name)
            .map_err(|error| anyhow!("--policy {name:?}: {error}"))?;
        let first = forms.next().context("a policy has a form")?.clone();
        let others: Vec<_> = forms.collect();
        if first.has_concurrent() || others.iter().any(|other| other.has_concurrent()) {
            concurrent.get_or_insert_with(|| name.clone());
        }
        all.push(match others.is_empty() {
            true => Alternative::one(name, first),
            false => chosen(&config.policies, name),
        });
    }
    match all.len() {
        0 => bail!(
            "name what is tried: --limit \"10/s burst 20\", or --config FILE with --policy NAME or \
             --rules"
        ),
        many if many > MAX_ALTERNATIVES => {
            bail!("{many} are tried side by side; at most {MAX_ALTERNATIVES} can be")
        }
        _ => Ok((all, concurrent)),
    }
}

fn chosen(policies: &Policies, name: &str) -> Alternative {
    let (policies, of) = (policies.clone(), name.to_owned());
    let choose = move |_: u32, key: &[u8]| policies.resolve(&of, key, None).ok().cloned();
    let holds = Holds::Chosen(Box::new(choose));
    Alternative { name: name.to_owned(), holds, policies: Vec::new() }
}

fn read_overrides_files(config: &mut Config) -> Result<()> {
    for file in std::mem::take(&mut config.overrides_files) {
        let rows = read_overrides(&file.path).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            anyhow!("{}", errors.join("\n"))
        })?;
        config.policies.set_additional_overrides(&file.policy, &rows)?;
    }
    Ok(())
}

fn headers_of(template: &Template) -> Vec<HeaderName> {
    let header = |source: &Source| match source {
        Source::Header(name) => Some(name.clone()),
        Source::Cookie(_) => Some(hyper::header::COOKIE),
        Source::Jwt(_) => Some(hyper::header::AUTHORIZATION),
        _ => None,
    };
    template.sources().filter_map(header).collect()
}

fn headers_of_rules(config: &Config) -> Vec<HeaderName> {
    let mut all = Vec::new();
    for rule in &config.rules.rules {
        all.extend(rule.matches.headers.iter().map(|header| header.name().clone()));
        for check in &rule.checks {
            all.extend(headers_of(&check.key));
            all.extend(check.tier.iter().flat_map(headers_of));
        }
    }
    all.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    all.dedup();
    all
}
