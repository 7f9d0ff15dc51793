//! `rules`, `default` and `jwt`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tollgate_document::{Name, did_you_mean};
use tollgate_rules::{HeaderMatcher, Jwt, KeySet, Match, Rule, RuleCheck, Rules, Template};

use crate::fields::{Invalid, SectionReader};
use crate::read::policies::PolicyTable;
use crate::read::track::Track;
use crate::schema::Value;
use crate::tree::{Content, Entry};

pub(super) fn read(
    root: &SectionReader<'_>,
    table: Option<&PolicyTable>,
) -> Result<Rules, Invalid> {
    let names = root.named("policies");
    let readers = root.sections("rules");
    // All rules are read, so that all mistakes are found.
    let rules: Vec<_> = readers.iter().map(|reader| rule(reader, names)).collect();
    let rules: Vec<_> = rules.into_iter().collect::<Result<_, _>>()?;
    let rules = Rules {
        rules,
        on_no_rule: root.get("default")?,
        path_case: root.get("path_case")?,
        ambiguous_paths: root.get("ambiguous_paths")?,
    };
    let Some(table) = table else { return Ok(rules) };
    rules.check(&table.policies).map_err(|error| {
        let Some(rule) = readers.get(error.rule) else { return Invalid };
        let Ok(checks) = checks(rule) else { return Invalid };
        match error.check.and_then(|check| checks.get(check)) {
            Some(check) => check.report(error.field, error.message),
            None => rule.report(error.field, error.message),
        }
    })?;
    for (reader, rule) in readers.iter().zip(&rules.rules) {
        for (fields, check) in checks(reader)?.iter().zip(&rule.checks) {
            check_note(fields, check, &table.tracks)?;
        }
    }
    Ok(rules)
}

/// Reports a note that its policy does not record.
fn check_note(
    fields: &SectionReader<'_>,
    check: &RuleCheck,
    tracks: &BTreeMap<String, Track>,
) -> Result<(), Invalid> {
    let is_recorded = tracks.get(&*check.policy).is_some_and(|track| track.recent > 0);
    let Some(note) = check.note.as_ref().filter(|_| !is_recorded) else { return Ok(()) };
    let message = format!(
        "policy {:?} does not record the note {:?}; add track: {{ recent: 20 }} to the policy",
        check.policy,
        note.to_string()
    );
    Err(fields.report("note", message))
}

fn rule(fields: &SectionReader<'_>, policies: &[(Name, Entry)]) -> Result<Rule, Invalid> {
    let matches = matches(&fields.section("match"));
    let checks = checks(fields).map(|all| {
        // All checks are read, so that all mistakes are found.
        all.iter().map(|x| check(x, policies)).collect::<Vec<_>>()
    });
    Ok(Rule { matches: matches?, checks: checks?.into_iter().collect::<Result<_, _>>()? })
}

/// The readers of the checks: that of the rule itself if it has the fields of a single check.
fn checks<'a>(fields: &SectionReader<'a>) -> Result<Vec<SectionReader<'a>>, Invalid> {
    let short = ["policy", "key", "tier", "cost", "on_missing", "note"];
    let short = short.into_iter().find(|short| fields.field_entry(short).is_some());
    match (fields.field_entry("checks"), short) {
        (Some(_), Some(name)) => {
            let message = "a rule with checks cannot have this field; move it into a check";
            Err(fields.report(name, message))
        }
        (Some(_), None) => {
            let checks = fields.sections("checks");
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
    let headers = fields.named("headers").iter().map(|(name, entry)| match &entry.content {
        Content::Scalar(_, Value::Text(value)) => {
            // An invalid name has already been reported.
            HeaderMatcher::new(&name.text, value).map_err(|_| Invalid)
        }
        _ => Err(Invalid),
    });
    Ok(Match {
        paths: fields.list("path")?,
        methods: fields.list("method")?,
        hosts: fields.list("host")?,
        headers: headers.collect::<Result<_, _>>()?,
    })
}

fn check(fields: &SectionReader<'_>, policies: &[(Name, Entry)]) -> Result<RuleCheck, Invalid> {
    let policy = policy(fields, policies);
    let key = fields.get::<Option<Template>>("key")?;
    let key = key.ok_or_else(|| fields.report("key", "a check needs a key, such as \"{ip}\""));
    Ok(RuleCheck {
        policy: policy?.into(),
        key: key?,
        tier: fields.get("tier")?,
        cost: fields.get("cost")?,
        on_missing: fields.get("on_missing")?,
        note: fields.get("note")?,
    })
}

/// The name of an existing policy.
fn policy(fields: &SectionReader<'_>, policies: &[(Name, Entry)]) -> Result<String, Invalid> {
    let names = policies.iter().map(|(name, _)| &*name.text);
    let Some(name) = fields.get::<Option<String>>("policy")? else {
        return Err(fields.report("policy", "a check needs the name of a policy"));
    };
    if names.clone().any(|known| known == name) {
        return Ok(name);
    }
    let hint = match policies.len() {
        0 => Some("no policy is defined; add one under policies".to_owned()),
        _ => did_you_mean(&name, names),
    };
    let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
    Err(fields.report("policy", format!("unknown policy {name:?}{hint}")))
}

/// The validation of tokens, if configured, and the file with the keys.
pub(super) fn jwt(
    fields: &SectionReader<'_>,
    rules: Option<&Rules>,
) -> Result<(Option<Jwt>, Option<PathBuf>), Invalid> {
    let file: Option<PathBuf> = fields.get("jwks_file")?;
    let base = match (&file, fields.get::<bool>("verify")?) {
        (Some(path), true) => Some(Jwt::signed(key_set(fields, path)?)),
        (None, false) => Some(Jwt::unverified()),
        (Some(_), false) => {
            let message = "with verify: false no key is used; remove one of the two";
            return Err(fields.report("jwks_file", message));
        }
        (None, true) => None,
    };
    let Some(jwt) = base else {
        if rules.is_some_and(Rules::uses_jwt) {
            let message = "a rule uses {jwt.…}; set the file with the issuer's keys, or verify: \
                           false if the gateway has verified the token";
            return Err(fields.report("jwks_file", message));
        }
        return Ok((None, None));
    };
    let jwt = Jwt {
        header: fields.get("header")?,
        issuer: fields.get::<Option<String>>("issuer")?.map(Into::into),
        audience: fields.get::<Option<String>>("audience")?.map(Into::into),
        require_exp: fields.get("require_exp")?,
        leeway: fields.get("leeway")?,
        ..jwt
    };
    Ok((Some(jwt), file))
}

fn key_set(fields: &SectionReader<'_>, path: &Path) -> Result<KeySet, Invalid> {
    let read = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
    let keys = read.and_then(|json| KeySet::parse(&json));
    keys.map_err(|error| fields.report("jwks_file", format!("{}: {error}", path.display())))
}
