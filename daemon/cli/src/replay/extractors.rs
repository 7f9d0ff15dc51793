//! Turn a log line into checks: with one template for all lines, or with the rules of a
//! configuration.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{MAX_KEY_LEN, Operation, Policies};
use tollgate_daemon::rules::{
    Client, Facts, Ipv6Prefix, Jwt, KeyError, MatchedCheck, Path, RuleOutcome, Rules, Source,
    Template,
};
use tollgate_replay::log::Line;
use tollgate_replay::report::KeyAlternative;
use tollgate_replay::{
    Candidate, CandidatePolicy, LogCheck, LogRequest, PlainCheck, RequestExtractor, Skip,
    operations,
};

/// The settings for the extraction of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtractContext {
    /// The length of the network of an IPv6 address in keys.
    pub(super) ipv6_prefix: Ipv6Prefix,
    /// The headers that rules and templates read.
    pub(super) headers: Vec<HeaderName>,
    /// The verification of tokens.
    pub(super) jwt: Option<Jwt>,
}

impl ExtractContext {
    /// Calls `extract` with the facts of a line.
    fn with_facts<T>(
        &self,
        line: &Line<'_>,
        extract: impl FnOnce(&Facts<'_>) -> Result<T, Skip>,
    ) -> Result<T, Skip> {
        let mut headers = HeaderMap::new();
        for name in &self.headers {
            if let Some(Ok(value)) = line.header(name.as_str()).map(HeaderValue::from_bytes) {
                headers.insert(name.clone(), value);
            }
        }
        let text = |bytes: Option<_>| bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        // A line without a method matches only rules without one.
        let method = text(line.method).unwrap_or("");
        let target = line.target.unwrap_or(b"/");
        let mut facts = Facts::new(method, target, &headers);
        facts.host = text(line.host).ok_or("the log does not contain the host");
        facts.client = line.address.and_then(parse_address).map_or(Client::Unknown, Client::Known);
        facts.ipv6_prefix = self.ipv6_prefix;
        facts.jwt = self.jwt.as_ref();
        facts.now = line.time.at;
        extract(&facts)
    }

    /// The key of an address; `None` if the text is not one.
    fn address(&self, text: &[u8]) -> Option<String> {
        parse_address(text).map(|address| self.ipv6_prefix.key(address))
    }
}

/// Parses an address, alone, in brackets, or with a port.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|text| text.ip()))
}

/// Why a line whose key has no value is skipped.
fn skip_reason(missing: KeyError) -> Skip {
    match missing {
        KeyError::Missing(_) | KeyError::Address(_) | KeyError::Host(_) => Skip::NoKey,
        other => Skip::Invalid(other.to_string()),
    }
}

/// Checks every line under one policy, with a key from a template or from the log.
#[derive(Debug)]
pub(super) struct KeyExtractor {
    /// The template; without it, the key is the field `key` of the log, or the address.
    pub(super) template: Option<Template>,
    pub(super) context: ExtractContext,
    pub(super) alternatives: Arc<AlternativeCounts>,
}

/// How many lines have the key from each alternative of the template.
#[derive(Debug, Default)]
pub(super) struct AlternativeCounts(Vec<(Source, AtomicU64)>);

impl AlternativeCounts {
    pub(super) fn new(template: Option<&Template>) -> Self {
        let mut sources: Vec<(Source, AtomicU64)> = Vec::new();
        for source in template.into_iter().flat_map(Template::alternatives) {
            if sources.iter().all(|(known, _)| known != source) {
                sources.push((source.clone(), AtomicU64::default()));
            }
        }
        AlternativeCounts(sources)
    }

    fn count(&self, source: &Source) {
        if let Some((_, lines)) = self.0.iter().find(|(known, _)| known == source) {
            lines.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of lines of each alternative, in the order of the template.
    pub(super) fn lines(&self) -> Vec<KeyAlternative> {
        let lines = |(source, lines): &(Source, AtomicU64)| KeyAlternative {
            name: source.to_string(),
            lines: lines.load(Ordering::Relaxed),
        };
        self.0.iter().map(lines).collect()
    }
}

impl KeyExtractor {
    /// Appends the key of a line.
    fn key(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<(), Skip> {
        let start = key.len();
        let Some(template) = &self.template else {
            if let Some(field) = line.key.filter(|key| !key.is_empty()) {
                key.extend_from_slice(field);
                return check_length(key.len() - start);
            }
            return self.address(line, key);
        };
        if template.is_only(&Source::Ip) {
            return self.address(line, key);
        }
        self.context.with_facts(line, |facts| {
            let path = Path::decoded(facts.target);
            key.extend(template.key(facts, &path, MAX_KEY_LEN).map_err(skip_reason)?);
            check_length(key.len() - start)?;
            if !self.alternatives.0.is_empty() {
                let used = template.used_alternatives(facts, &path);
                used.for_each(|source| self.alternatives.count(source));
            }
            Ok(())
        })
    }

    /// Appends the client's address, or its network.
    fn address(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<(), Skip> {
        let text = line.address.ok_or(Skip::NoKey)?;
        // An IPv4 address has only one spelling, which is that of the key.
        if std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok()) {
            key.extend_from_slice(text);
            return Ok(());
        }
        key.extend_from_slice(self.context.address(text).ok_or(Skip::NoKey)?.as_bytes());
        Ok(())
    }
}

/// Checks the length of a key.
fn check_length(length: usize) -> Result<(), Skip> {
    match length {
        0 => Err(Skip::NoKey),
        length if length > MAX_KEY_LEN => {
            Err(Skip::Invalid(format!("the key has {length} bytes; at most {MAX_KEY_LEN}")))
        }
        _ => Ok(()),
    }
}

impl RequestExtractor for KeyExtractor {
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip> {
        if line.field("verb").is_some_and(|field| !field.is_empty() && field != b"check") {
            return Err(Skip::Invalid(
                "the line has an operation, but the first lines had none; use --verbs".to_owned(),
            ));
        }
        self.key(line, key)?;
        Ok(PlainCheck { policy: 0, cost: operations::cost(line)? })
    }

    fn request(&self, line: &Line<'_>, number: u64) -> Result<LogRequest, Skip> {
        let mut key = Vec::new();
        self.key(line, &mut key)?;
        let operation = operations::operation(line, number)?;
        let checks =
            vec![LogCheck { policy: 0, variant: None, key, cost: operations::cost(line)? }];
        Ok(LogRequest { operation, checks, request_id: operations::request_id(line) })
    }
}

/// Applies the rules to each line.
#[derive(Debug)]
pub(super) struct RuleExtractor {
    rules: Rules,
    policies: Policies,
    context: ExtractContext,
    /// The numbers of the policies by name.
    numbers: HashMap<String, u32>,
}

impl RuleExtractor {
    pub(super) fn new(rules: Rules, policies: Policies, context: ExtractContext) -> Self {
        let numbers = policies.iter().map(|policy| policy.name().to_owned()).zip(0..).collect();
        RuleExtractor { rules, policies, context, numbers }
    }

    /// The candidate with all policies and their variants.
    pub(super) fn candidate(&self, name: String) -> Candidate {
        let policies = self.policies.clone();
        let names: Vec<_> = policies.iter().map(|policy| policy.name().to_owned()).collect();
        let policy_names = names.clone();
        #[expect(clippy::expect_used, reason = "the number is one of `numbers`; no tier is named")]
        let resolve = move |policy: u32, key: &[u8]| {
            let name = &names[usize::try_from(policy).expect("an index")];
            policies.resolve(name, key, None).expect("a policy of the configuration").clone()
        };
        let policy = CandidatePolicy::PerKey(Box::new(resolve));
        Candidate { name, policy, policy_names }
    }

    /// Whether every line makes at most one plain check.
    pub(super) fn is_plain(&self) -> bool {
        self.rules.rules.iter().all(|rule| {
            matches!(&*rule.checks, [only] if only.tier.is_none())
                && rule.checks.iter().all(|check| self.numbers.contains_key(&*check.policy))
        })
    }

    fn with_checks<T>(
        &self,
        line: &Line<'_>,
        take: impl FnOnce(Vec<MatchedCheck<'_>>) -> Result<T, Skip>,
    ) -> Result<T, Skip> {
        self.context.with_facts(line, |facts| match self.rules.evaluate(facts, MAX_KEY_LEN) {
            Ok(RuleOutcome::Checks(checks)) if !checks.is_empty() => take(checks),
            Ok(RuleOutcome::Checks(_) | RuleOutcome::NoRule(_)) => Err(Skip::NoRule),
            Ok(RuleOutcome::Deny(_)) => Err(Skip::NoKey),
            Err(missing) => Err(skip_reason(missing)),
        })
    }

    fn number(&self, policy: &str) -> Result<u32, Skip> {
        let unknown = || Skip::Invalid(format!("unknown policy {policy:?}"));
        self.numbers.get(policy).copied().ok_or_else(unknown)
    }

    fn owned_check(&self, matched: MatchedCheck<'_>) -> Result<LogCheck, Skip> {
        let policy = self.number(matched.policy)?;
        let variant = match matched.tier.as_deref().map(std::str::from_utf8) {
            // As at a gateway, an unknown tier is ignored, because a client names it.
            None | Some(Err(_)) => None,
            Some(Ok(tier)) => {
                self.policies.resolve(matched.policy, &matched.key, Some(tier)).ok().cloned()
            }
        };
        Ok(LogCheck { policy, variant, key: matched.key, cost: matched.cost })
    }
}

impl RequestExtractor for RuleExtractor {
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip> {
        self.with_checks(line, |mut checks| {
            let Some(check) = checks.pop().filter(|_| checks.is_empty()) else {
                return Err(Skip::Invalid(
                    "the path is ambiguous and matches two rules; use --decisions to decide it"
                        .to_owned(),
                ));
            };
            key.extend_from_slice(&check.key);
            Ok(PlainCheck { policy: self.number(check.policy)?, cost: check.cost })
        })
    }

    fn request(&self, line: &Line<'_>, _: u64) -> Result<LogRequest, Skip> {
        self.with_checks(line, |checks| {
            let checks = checks.into_iter().map(|check| self.owned_check(check));
            let operation = Operation::Check { lease: None };
            Ok(LogRequest {
                operation,
                checks: checks.collect::<Result<_, _>>()?,
                request_id: None,
            })
        })
    }
}
