//! The lookup in the tree, compared with a simple model.

use proptest::prelude::*;

use super::*;

/// A descriptor of a configuration. Its limit is a unique number of requests.
#[derive(Clone, Debug)]
struct DescriptorModel {
    key: String,
    value: String,
    limit: Option<u32>,
    detailed: bool,
    measured: bool,
    shared: bool,
    inner: Vec<DescriptorModel>,
}

impl DescriptorModel {
    fn composite(&self) -> String {
        if self.value.is_empty() {
            self.key.clone()
        } else {
            format!("{}_{}", self.key, self.value)
        }
    }

    /// As JSON, which is valid YAML.
    fn json(&self) -> serde_json::Value {
        let mut json = serde_json::json!({
            "key": self.key,
            "value": self.value,
            "detailed_metric": self.detailed,
            "value_to_metric": self.measured,
            "share_threshold": self.shared,
            "descriptors": self.inner.iter().map(DescriptorModel::json).collect::<Vec<_>>(),
        });
        if let Some(limit) = self.limit {
            json["rate_limit"] = serde_json::json!({ "unit": "day", "requests_per_unit": limit });
        }
        json
    }

    /// Makes the composite keys and limits of a level unique, and shares only wildcards.
    fn with_unique_keys(level: Vec<DescriptorModel>, next: &mut u32) -> Vec<DescriptorModel> {
        let mut unique: Vec<DescriptorModel> = Vec::new();
        for mut level in level {
            if unique.iter().any(|other| other.composite() == level.composite()) {
                continue;
            }
            *next += 1;
            level.limit = level.limit.map(|_| *next);
            level.shared &= level.composite().contains('*');
            level.inner = DescriptorModel::with_unique_keys(level.inner, next);
            unique.push(level);
        }
        unique
    }
}

fn fits(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|at| fits(rest, &text[at..])),
        [first, rest @ ..] => text.first() == Some(first) && fits(rest, &text[1..]),
    }
}

/// A step of the lookup: the descriptor, how it matches, and the replacement of the value.
fn step<'a>(
    level: &'a [DescriptorModel],
    key: &str,
    value: &str,
) -> Option<(&'a DescriptorModel, String, bool)> {
    let composite = format!("{key}_{value}");
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    if let Some(level) = level.iter().find(|level| level.composite() == composite) {
        return Some((level, value.to_owned(), false));
    }
    let is_wild = |described: &&DescriptorModel| {
        described.composite().contains('*')
            && fits(&chars(&described.composite()), &chars(&composite))
    };
    if let Some(level) = level.iter().find(is_wild) {
        let pattern = level.composite();
        let pattern = pattern.strip_prefix(&format!("{key}_")).unwrap_or(&pattern).to_owned();
        let is_shared = level.shared && !pattern.is_empty();
        let measured = if is_shared || !level.measured { pattern } else { value.to_owned() };
        return Some((level, measured, is_shared));
    }
    let level = level.iter().find(|level| level.composite() == key)?;
    Some((level, if level.measured { value.to_owned() } else { String::new() }, false))
}

/// The limit, the stat and the values in the key.
fn expected(
    level: &[DescriptorModel],
    entries: &[(&str, &str)],
) -> Option<(u32, String, Vec<String>)> {
    let (mut level, mut stat, mut detailed) = (level, "d".to_owned(), "d".to_owned());
    let (mut values, mut last, mut any_shared) = (Vec::new(), None, false);
    for (key, value) in entries {
        let (inner, measured, is_shared) = step(level, key, value)?;
        any_shared |= is_shared;
        let part = |value: &str| {
            if value.is_empty() { format!(".{key}") } else { format!(".{key}_{value}") }
        };
        stat += &part(&measured);
        values.push(if is_shared { measured } else { (*value).to_owned() });
        detailed += &part(values.last()?);
        if values.last()?.is_empty() {
            // If nothing is shared, the detailed stat keeps the `_` of an empty value.
            detailed.push('\0');
        }
        (level, last) = (&inner.inner, Some(inner));
    }
    let last = last?;
    let detailed = detailed.replace('\0', if any_shared { "" } else { "_" });
    Some((last.limit?, if last.detailed { detailed } else { stat }, values))
}

fn text() -> impl Strategy<Value = String> {
    "[ab_*]{0,3}"
}

fn levels() -> impl Strategy<Value = Vec<DescriptorModel>> {
    let one = |inner: BoxedStrategy<Vec<DescriptorModel>>| {
        let flags = any::<(bool, bool, bool, bool)>();
        ("[ab_*]{1,2}", text(), flags, inner).prop_map(|(key, value, flags, inner)| {
            let (has_limit, detailed, measured, shared) = flags;
            let limit = has_limit.then_some(0);
            DescriptorModel { key, value, limit, detailed, measured, shared, inner }
        })
    };
    let leaf = prop::collection::vec(one(Just(Vec::new()).boxed()), 0..4).boxed();
    let middle = prop::collection::vec(one(leaf), 0..4).boxed();
    prop::collection::vec(one(middle), 1..6)
}

proptest! {
    #[test]
    fn lookup_agrees_with_the_model(
        levels in levels(),
        requests in prop::collection::vec(prop::collection::vec(("[ab_*]{0,2}", text()), 0..4), 1..40),
    ) {
        let levels = DescriptorModel::with_unique_keys(levels, &mut 0);
        let all = levels.iter().map(DescriptorModel::json).collect::<Vec<_>>();
        let domains = read(&serde_json::json!({ "domain": "d", "descriptors": all }).to_string());
        for request in &requests {
            let entries = request.iter().map(|(key, value)| (&**key, &**value)).collect::<Vec<_>>();
            let found = match domains.find("d", &entries) {
                Lookup::Rule(matched) => {
                    Some((matched.rule.requests_per_unit, matched.stat.into_owned(), matched.key))
                },
                _ => None,
            };
            let expected = expected(&levels, &entries).map(|(limit, stat, values)| {
                let parts = entries.iter().zip(&values).map(|((key, _), value)| {
                    format!("{}={value}", if key.is_empty() { "%" } else { key })
                });
                (limit, stat, parts.collect::<Vec<_>>().join(";"))
            });
            prop_assert_eq!(found, expected, "{:?}", entries);
        }
    }
}
