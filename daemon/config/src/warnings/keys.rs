//! Overrides, list entries and tiers that no request of a gateway can use.

use std::path::PathBuf;

use tollgate::{KeyPattern, KeyPatternKind};
use tollgate_document::{ConfigError, Origin};
use tollgate_rules::{KeyForms, Template};

use crate::layers::LoadedConfig;
use crate::overrides_file::read_overrides;
use crate::schema::Value;
use crate::tree::{Content, Entry};
use crate::validate::join;

/// The most entries of a field that are reported one by one.
const MAX_REPORTED: usize = 8;

/// A field of a policy, such as `policies.api.overrides`.
struct PolicyField<'a> {
    path: String,
    origin: &'a Origin,
    forms: &'a KeyForms<'a>,
}

impl LoadedConfig {
    /// The entries that match no key of the rules that use their policy. A policy that no rule uses
    /// gets its keys from other clients, which may send any.
    pub(super) fn unused_keys(&self) -> Vec<ConfigError> {
        let mut warnings = Vec::new();
        let policies = self.tree.get("policies").map(|entry| &entry.content);
        let Some(Content::Fields(policies)) = policies else { return Vec::new() };
        for (name, policy) in policies {
            let forms = self.config.rules.key_forms(&name.text, self.config.ipv6_prefix);
            let Some(forms) = forms else { continue };
            let field = |field: &str| {
                let entry = policy.get(field)?;
                let path = join(&join("policies", &name.text), field);
                Some((PolicyField { path, origin: &entry.origin, forms: &forms }, entry))
            };
            warnings.extend(field("overrides").map(|(x, entry)| self.unused_overrides(&x, entry)));
            warnings.extend(field("overrides_file").map(|(x, _)| self.unused_rows(&x, &name.text)));
            for list in ["allow", "deny"] {
                warnings.extend(field(list).map(|(x, entry)| self.unused_list_entries(&x, entry)));
            }
            warnings.extend(field("tiers").map(|(x, entry)| self.unused_tiers(&x, entry)));
        }
        warnings.into_iter().flatten().collect()
    }

    /// The keys of rules that are the name of a placeholder, such as `ip`, without its braces.
    pub(super) fn keys_without_braces(&self) -> Vec<ConfigError> {
        let mut warnings = Vec::new();
        for (index, rule) in list(self.tree.get("rules")).iter().enumerate() {
            let path = format!("rules[{index}]");
            let checks = list(rule.get("checks")).iter().enumerate();
            let checks = checks.map(|(index, check)| (format!("{path}.checks[{index}]"), check));
            for (path, check) in std::iter::once((path.clone(), rule)).chain(checks) {
                let Some(entry) = check.get("key") else { continue };
                let Content::Scalar(text, _) = &entry.content else { continue };
                let placeholder = format!("{{{text}}}");
                if !text.contains('{') && Template::parse(&placeholder).is_ok() {
                    let message = format!(
                        "{text:?} is the same key for every request; write {placeholder:?}"
                    );
                    warnings.push(self.warning_at(&join(&path, "key"), &message, &entry.origin));
                }
            }
        }
        warnings
    }

    fn unused_overrides(&self, field: &PolicyField<'_>, entry: &Entry) -> Vec<ConfigError> {
        let Content::Fields(rows) = &entry.content else { return Vec::new() };
        let unused = rows.iter().filter(|(name, _)| {
            KeyPattern::parse(&name.text).is_ok_and(|key| !field.forms.can_match(key.kind()))
        });
        let unused =
            unused.map(|(name, _)| (&*name.text, join(&field.path, &name.text), &name.origin));
        self.report(field, unused.collect())
    }

    fn unused_list_entries(&self, field: &PolicyField<'_>, entry: &Entry) -> Vec<ConfigError> {
        let Content::List(keys) = &entry.content else { return Vec::new() };
        let unused = keys.iter().enumerate().filter_map(|(index, entry)| {
            let Content::Scalar(_, Value::Text(text)) = &entry.content else { return None };
            let key = match text.strip_suffix('*') {
                Some(prefix) => KeyPatternKind::Prefix(prefix.as_bytes()),
                None => KeyPatternKind::Exact(text.as_bytes()),
            };
            let is_unused = !field.forms.can_match(key);
            is_unused.then(|| (&**text, format!("{}[{index}]", field.path), &entry.origin))
        });
        self.report(field, unused.collect())
    }

    /// Reports entries, each with its path and its origin.
    fn report(
        &self,
        field: &PolicyField<'_>,
        unused: Vec<(&str, String, &Origin)>,
    ) -> Vec<ConfigError> {
        let more = unused.len().saturating_sub(MAX_REPORTED);
        let mut warnings: Vec<_> = unused
            .into_iter()
            .take(MAX_REPORTED)
            .map(|(text, path, origin)| self.warning_at(&path, &unused_key(field, text), origin))
            .collect();
        if more > 0 {
            let message = format!("{more} more entries match no key of a rule");
            warnings.push(self.warning_at(&field.path, &message, field.origin));
        }
        warnings
    }

    /// The rows of a file, counted: there may be a million.
    fn unused_rows(&self, field: &PolicyField<'_>, policy: &str) -> Vec<ConfigError> {
        let mut files = self.config.overrides_files.iter();
        let path = files.find(|file| file.policy == policy).map(|file| PathBuf::clone(&file.path));
        // A file that cannot be read is an error, which is reported elsewhere.
        let Some(Ok(rows)) = path.map(|path| read_overrides(&path)) else { return Vec::new() };
        let mut unused = rows.patterns().filter(|key| !field.forms.can_match(key.kind()));
        let Some(first) = unused.next() else { return Vec::new() };
        let count = unused.count() + 1;
        let example = first.to_string();
        let message = format!(
            "{count} of {} overrides match no key of a rule, such as {example:?}: {}",
            rows.len(),
            unused_key(field, &example),
        );
        vec![self.warning_at(&field.path, &message, field.origin)]
    }

    fn unused_tiers(&self, field: &PolicyField<'_>, entry: &Entry) -> Vec<ConfigError> {
        let Content::Fields(tiers) = &entry.content else { return Vec::new() };
        let unused = tiers.iter().filter(|(name, _)| !field.forms.can_select(&name.text));
        unused
            .map(|(name, _)| {
                let message = format!(
                    "no rule selects this tier; add tier to the check of {}, or remove this tier, \
                     unless other clients send it",
                    field.forms.rules(),
                );
                self.warning_at(&join(&field.path, &name.text), &message, &name.origin)
            })
            .collect()
    }
}

fn list(entry: Option<&Entry>) -> &[Entry] {
    match entry.map(|entry| &entry.content) {
        Some(Content::List(all)) => all,
        _ => &[],
    }
}

fn unused_key(field: &PolicyField<'_>, text: &str) -> String {
    let forms = field.forms;
    let remedy = match forms.suggest(text) {
        Some(key) => format!("write {key:?}"),
        None => "write it in that form".to_owned(),
    };
    format!("no request has this key: {forms}; {remedy}, unless other clients send it")
}
