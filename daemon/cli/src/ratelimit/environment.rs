//! What the environment says, by the table.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use super::value::{Decimal, Value};
use super::variables::{self, Fate, Variable};

/// The variables that are set, of those in the table.
#[derive(Debug, Default)]
pub(super) struct Environment {
    set: BTreeMap<&'static str, String>,
    wrong: Mutex<BTreeSet<Wrong>>,
    /// What was asked for, by which a test holds the table against what is read.
    #[cfg(test)]
    pub(super) asked: Mutex<BTreeSet<&'static str>>,
}

/// A variable that says what cannot be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wrong {
    name: &'static str,
    shown: Shown,
    remedy: String,
}

/// The value of a variable, as far as it may be seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Value(String),
    Secret,
    Empty,
    NotSet,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { name, shown, remedy } = self;
        match shown {
            Shown::Value(value) => write!(f, "{name} is {value:?}; {remedy}"),
            Shown::Secret => write!(f, "{name} cannot be used; {remedy}"),
            Shown::Empty => write!(f, "{name} is empty; {remedy}"),
            Shown::NotSet => write!(f, "{name} is not set; {remedy}"),
        }
    }
}

impl Environment {
    /// Takes from all variables those of the table.
    pub(super) fn of(all: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Environment::default();
        for (name, value) in all {
            let Some(variable) = name.to_str().and_then(of_name) else { continue };
            match value.into_string() {
                Ok(value) => {
                    environment.set.insert(variable.name, value);
                }
                Err(_) => environment.refuse(variable.name, "it is no text in UTF-8; write some"),
            }
        }
        environment
    }

    /// What is said of each variable that is set to something else than its default and does
    /// nothing.
    pub(super) fn ignored(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        variables::all().filter_map(|x| match x.fate {
            Fate::Ignored(why) if self.said(x.name).is_some_and(|text| !x.is_idle(text)) => {
                Some((x.name, why))
            }
            _ => None,
        })
    }

    /// Everything that was found wrong, a line each, in the order of the names.
    pub(super) fn wrong(&self) -> Vec<Wrong> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Notes that a variable says what cannot be.
    pub(super) fn refuse(&self, name: &'static str, remedy: impl Into<String>) {
        let is_secret = of_name(name).is_some_and(|x| x.is_secret);
        let shown = match self.set.get(name).filter(|set| !set.is_empty()) {
            Some(_) if is_secret => Shown::Secret,
            Some(value) => Shown::Value(value.clone()),
            None if self.set.contains_key(name) => Shown::Empty,
            None => Shown::NotSet,
        };
        let wrong = Wrong { name, shown, remedy: remedy.into() };
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).insert(wrong);
    }

    /// The text of a variable, if it is set.
    pub(super) fn said(&self, name: &'static str) -> Option<&str> {
        self.set.get(name).map(String::as_str)
    }

    pub(super) fn text(&self, name: &'static str) -> String {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    /// A text, unless it is empty.
    pub(super) fn some(&self, name: &'static str) -> Option<String> {
        Some(self.text(name)).filter(|x| !x.is_empty())
    }

    pub(super) fn truth(&self, name: &'static str) -> bool {
        matches!(self.value(name), Some(Value::Truth(true)))
    }

    pub(super) fn duration(&self, name: &'static str) -> Duration {
        match self.value(name) {
            Some(Value::Duration(duration)) => duration,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn decimal(&self, name: &'static str) -> Decimal {
        match self.value(name) {
            Some(Value::Decimal(decimal)) => decimal,
            _ => Decimal { millionths: 0 },
        }
    }

    pub(super) fn pairs(&self, name: &'static str) -> Vec<(String, String)> {
        match self.value(name) {
            Some(Value::Pairs(pairs)) => pairs,
            _ => Vec::new(),
        }
    }

    /// A whole number, if there is one, which must be in these bounds.
    pub(super) fn whole(&self, name: &'static str, least: u32, most: u32) -> Option<u32> {
        let Some(Value::Whole(number)) = self.value(name) else { return None };
        let number = u32::try_from(number).ok().filter(|x| (least..=most).contains(x));
        if number.is_none() {
            self.refuse(name, format!("write a number from {least} to {most}"));
        }
        number
    }

    /// One of these words, in whatever case; the word as it is here.
    pub(super) fn word(
        &self,
        name: &'static str,
        words: &'static [&'static str],
    ) -> Option<&'static str> {
        let text = self.text(name);
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(&text)).copied();
        if found.is_none() {
            self.refuse(name, format!("write one of {}", words.join(", ")));
        }
        found
    }

    /// What a variable says, or else its default; nothing where there is neither.
    fn value(&self, name: &'static str) -> Option<Value> {
        #[cfg(test)]
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        let variable = of_name(name)?;
        let text = self.said(name).unwrap_or(variable.default);
        let read = variable.kind.read(text);
        if let (Err(remedy), Some(_)) = (&read, self.said(name)) {
            self.refuse(name, format!("{remedy}, or leave it out"));
        }
        read.ok()
    }
}

fn of_name(name: &str) -> Option<&'static Variable> {
    variables::all().find(|x| x.name == name)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn environment(lines: &str) -> Environment {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap();
            (name.into(), value.into())
        };
        Environment::of(lines.split_whitespace().map(pair))
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_the_remedy() {
        for (lines, ask, said) in [
            ("PORT=http", "PORT", "PORT is \"http\"; write a whole number, or leave it out"),
            ("PORT=70000", "PORT", "PORT is \"70000\"; write a number from 0 to 65535"),
            ("PORT=", "PORT", "PORT is empty; write a whole number, or leave it out"),
            ("PORT=0x1F", "PORT", ""),
            ("", "PORT", ""),
        ] {
            let environment = environment(lines);
            environment.whole(ask, 0, 65_535);
            let wrong: Vec<_> = environment.wrong().iter().map(Wrong::to_string).collect();
            assert_eq!(wrong.join("\n"), said, "{lines}");
        }
    }

    #[test]
    fn nobody_sees_a_secret() {
        let environment = environment("REDIS_AUTH=hunter2");
        environment.refuse("REDIS_AUTH", "write it otherwise");
        assert_eq!(
            environment.wrong().first().unwrap().to_string(),
            "REDIS_AUTH cannot be used; write it otherwise"
        );
    }

    #[test]
    fn only_what_is_set_to_something_else_than_its_default_is_told_of() {
        for (lines, names) in [
            ("", &[][..]),
            ("STATSD_HOST=localhost STATSD_PORT=8125 USE_STATSD=0", &[]),
            ("STATSD_PORT=0x1FBD EXPIRATION_JITTER_MAX_SECONDS=300", &[]),
            ("REDIS_STARTUP_MAX_INTERVAL=30000ms", &[]),
            ("STATSD_HOST=statsd PORT=9", &["STATSD_HOST"]),
            ("USE_STATSD=true UNKNOWN=1", &["USE_STATSD"]),
            ("MEMCACHE_HOST_PORT=a:1", &["MEMCACHE_HOST_PORT"]),
            ("STATSD_PORT=nonsense", &["STATSD_PORT"]),
        ] {
            let environment = environment(lines);
            let ignored: Vec<_> = environment.ignored().map(|(name, _)| name).collect();
            assert_eq!(ignored, names, "{lines}");
        }
    }
}
