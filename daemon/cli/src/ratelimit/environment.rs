//! The environment variables of envoyproxy/ratelimit that are set.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::value::Value;
use super::variables;

/// The variables that are set, and the errors found in them.
#[derive(Debug, Default)]
pub(super) struct Environment {
    values: BTreeMap<&'static str, String>,
    /// Variables without effect, with the reason.
    ignored: BTreeMap<String, &'static str>,
    /// Variables that are probably misspelt, with the remedy.
    misspelt: BTreeMap<String, String>,
    /// Messages, each of which begins with the name of a variable.
    errors: Mutex<BTreeSet<String>>,
    /// The variables that were read, to compare with the table in a test.
    #[cfg(test)]
    pub(super) requested: Mutex<BTreeSet<&'static str>>,
}

impl Environment {
    /// Selects the variables of the table.
    pub(super) fn from_vars(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Environment::default();
        for (name, value) in vars {
            let Some(name) = name.to_str() else { continue };
            if let Some(variable) = variables::find(name) {
                match value.into_string() {
                    Ok(value) => {
                        environment.values.insert(variable.name, value);
                    }
                    Err(_) => environment.reject(variable.name, "write text in UTF-8"),
                }
            } else if let Some(ignored) = variables::find_ignored(name) {
                if !value.to_str().is_some_and(|value| ignored.is_idle(value)) {
                    environment.ignored.insert(name.to_owned(), ignored.reason);
                }
            } else if let Some(remedy) = variables::suggest(name)
                // Kubernetes sets `REDIS_PORT=tcp://…` if there is a service `redis`.
                && !value.to_str().is_some_and(|value| value.starts_with("tcp://"))
            {
                environment.misspelt.insert(name.to_owned(), remedy);
            }
        }
        environment
    }

    /// The variables without the expected effect, each with the reason.
    pub(super) fn ignored(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.ignored.iter().map(|(name, reason)| (name.as_str(), *reason))
    }

    /// Variables that are probably misspelt: the message about each.
    pub(super) fn misspelt(&self) -> impl Iterator<Item = String> {
        self.misspelt.iter().map(|(name, remedy)| format!("{name} is unknown; {remedy}"))
    }

    /// All errors so far, sorted by name.
    pub(super) fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Records an invalid value.
    pub(super) fn reject(&self, name: &'static str, remedy: impl fmt::Display) {
        let is_secret = variables::find(name).is_some_and(|variable| variable.is_secret);
        let state = match self.get(name) {
            None => "not set".to_owned(),
            Some("") => "empty".to_owned(),
            Some(_) if is_secret => "invalid".to_owned(),
            Some(value) => format!("{value:?}"),
        };
        let error = format!("{name} is {state}; {remedy}");
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).insert(error);
    }

    /// The value of a variable, if it is set.
    pub(super) fn get(&self, name: &'static str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(super) fn text(&self, name: &'static str) -> String {
        self.typed(name, |value| if let Value::Text(value) = value { Some(value) } else { None })
    }

    /// A text, unless it is empty.
    pub(super) fn non_empty(&self, name: &'static str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(super) fn bool(&self, name: &'static str) -> bool {
        self.typed(name, |value| if let Value::Bool(value) = value { Some(value) } else { None })
    }

    pub(super) fn duration(&self, name: &'static str) -> Duration {
        self.typed(
            name,
            |value| if let Value::Duration(value) = value { Some(value) } else { None },
        )
    }

    /// A decimal fraction in millionths.
    pub(super) fn millionths(&self, name: &'static str) -> u64 {
        self.typed(name, |value| if let Value::Decimal(value) = value { Some(value) } else { None })
    }

    pub(super) fn pairs(&self, name: &'static str) -> Vec<(String, String)> {
        self.typed(name, |value| if let Value::Pairs(value) = value { Some(value) } else { None })
    }

    /// The value or the default of a variable. If it is invalid, which [`errors`](Self::errors) then
    /// reports, the result is zero or empty.
    #[expect(clippy::expect_used, reason = "a test reads every variable of the table")]
    fn typed<T: Default>(&self, name: &'static str, convert: impl Fn(Value) -> Option<T>) -> T {
        match self.value(name).map(convert) {
            Some(value) => value.expect("the table has the kind of the variable"),
            None => T::default(),
        }
    }

    /// An integer from `min` to `max`, if the variable is set or has a default.
    pub(super) fn integer(&self, name: &'static str, min: u32, max: u32) -> Option<u32> {
        let Some(Value::Whole(number)) = self.value(name) else { return None };
        let number = u32::try_from(number).ok().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.reject(name, format!("write a number from {min} to {max}"));
        }
        number
    }

    /// One of these words, ignoring case.
    pub(super) fn one_of(
        &self,
        name: &'static str,
        words: &'static [&'static str],
    ) -> Option<&'static str> {
        let text = self.text(name);
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(&text)).copied();
        if found.is_none() {
            self.reject(name, format!("write one of {}", words.join(", ")));
        }
        found
    }

    /// The value or the default of a variable; `None` if it has neither, or is invalid.
    #[expect(clippy::expect_used, reason = "a test reads every variable of the table")]
    fn value(&self, name: &'static str) -> Option<Value> {
        #[cfg(test)]
        self.requested.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        let variable = variables::find(name).expect("only variables of the table are read");
        let text = self.get(name).unwrap_or(variable.default);
        let parsed = variable.kind.parse(text);
        if let (Err(remedy), Some(_)) = (&parsed, self.get(name)) {
            self.reject(name, format!("{remedy}, or leave it out"));
        }
        parsed.ok()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn environment(lines: &str) -> Environment {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap();
            (name.into(), value.into())
        };
        Environment::from_vars(lines.split_whitespace().map(pair))
    }

    #[test]
    fn error_contains_name_value_and_remedy() {
        for (lines, name, message) in [
            ("PORT=http", "PORT", "PORT is \"http\"; write a whole number, or leave it out"),
            ("PORT=70000", "PORT", "PORT is \"70000\"; write a number from 0 to 65535"),
            ("PORT=", "PORT", "PORT is empty; write a whole number, or leave it out"),
            ("PORT=0x1F", "PORT", ""),
            ("", "PORT", ""),
        ] {
            let environment = environment(lines);
            environment.integer(name, 0, 65_535);
            assert_eq!(environment.errors().join("\n"), message, "{lines}");
        }
    }

    #[test]
    fn error_hides_a_secret() {
        let environment = environment("REDIS_AUTH=hunter2");
        environment.reject("REDIS_AUTH", "write it otherwise");
        assert_eq!(environment.errors(), ["REDIS_AUTH is invalid; write it otherwise"]);
    }

    #[test]
    fn ignored_variables_are_reported_unless_they_have_an_idle_value() {
        for (lines, names) in [
            ("", &[][..]),
            ("STATSD_HOST=localhost STATSD_PORT=8125 USE_STATSD=0", &[]),
            ("STATSD_PORT=0x1FBD EXPIRATION_JITTER_MAX_SECONDS=300", &[]),
            ("REDIS_STARTUP_MAX_INTERVAL=30000ms", &[]),
            ("STATSD_HOST=statsd PORT=9", &["STATSD_HOST"]),
            ("USE_STATSD=true UNKNOWN=1", &["USE_STATSD"]),
            ("MEMCACHE_HOST_PORT=a:1", &["MEMCACHE_HOST_PORT"]),
            ("STATSD_PORT=nonsense", &["STATSD_PORT"]),
            ("REDIS_PERSECOND=0 REDIS_PERSECOND_TLS=false", &[]),
            ("REDIS_PERSECOND= REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM=", &[]),
            ("REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM=1", &[]),
            ("REDIS_PERSECOND=true", &["REDIS_PERSECOND"]),
            ("REDIS_PERSECOND_TLS=true", &["REDIS_PERSECOND_TLS"]),
        ] {
            let environment = environment(lines);
            let ignored: Vec<_> = environment.ignored().map(|(name, _)| name).collect();
            assert_eq!(ignored, names, "{lines}");
        }
    }

    #[test]
    fn misspelt_variables_are_reported_with_the_known_one() {
        for (line, known) in [
            ("REDIS_URI=redis:6379", Some("REDIS_URL")),
            ("GRPC_PROT=8081", Some("GRPC_PORT")),
            ("RUNTIME_SUB_DIRECTORY=config", Some("RUNTIME_SUBDIRECTORY")),
            ("HOME=/root", None),
            ("GRPC_VERBOSITY=debug", None),
            // Set by Kubernetes.
            ("REDIS_PORT=tcp://10.0.0.1:6379", None),
            ("REDIS_SERVICE_HOST=10.0.0.1", None),
            ("REDIS_SERVICE_PORT=6379", None),
            ("REDIS_PORT_6379_TCP_ADDR=10.0.0.1", None),
        ] {
            let name = line.split('=').next().unwrap();
            let expected =
                known.map(|known| format!("{name} is unknown; did you mean \"{known}\"?"));
            assert_eq!(environment(line).misspelt().next(), expected, "{line}");
        }
    }
}
