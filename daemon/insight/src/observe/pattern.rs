//! The names of an application's counters.

use std::fmt;
use std::str::FromStr;

/// The longest name of a counter, in bytes.
const MAX_NAME_BYTES: usize = 1_024;
/// The part of a pattern that is the key.
const KEY: &str = "KEY";

/// A pattern of the names of counters, such as `{KEY}:*`.
///
/// `KEY` is the key, and `*` is the window. Both match one or more bytes other than braces; `KEY` matches
/// as many as possible. All else matches itself.
///
/// # Examples
/// ```
/// use tollgate_insight::CounterPattern;
///
/// let pattern: CounterPattern = "rate:{KEY}:*".parse()?;
/// assert_eq!(pattern.key(b"rate:{user:42}:17"), Some(&b"user:42"[..]));
/// assert_eq!(pattern.key(b"rate:user:42:17"), None);
/// # Ok::<(), tollgate_insight::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterPattern {
    text: Box<str>,
    before: Box<str>,
    /// The text between `KEY` and `*`, if there is a `*`, and whether the `*` comes first.
    window: Option<(Box<str>, bool)>,
    after: Box<str>,
}

impl CounterPattern {
    /// The key of the counter of this name, if it matches.
    #[must_use]
    pub fn key<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let within = name.strip_prefix(self.before.as_bytes())?;
        let within = within.strip_suffix(self.after.as_bytes())?;
        let (key, window) = match &self.window {
            None => (within, None),
            Some((between, is_first)) => {
                let between = between.as_bytes();
                let mut positions =
                    within.windows(between.len()).enumerate().filter(|(_, part)| *part == between);
                // The key is as long as possible, and neither part is empty.
                let is_inside = |at: usize| at > 0 && at + between.len() < within.len();
                let at = match is_first {
                    true => positions.find(|(at, _)| is_inside(*at)),
                    false => positions.rfind(|(at, _)| is_inside(*at)),
                };
                let (first, rest) = within.split_at_checked(at?.0)?;
                let second = rest.get(between.len()..)?;
                if *is_first { (second, Some(first)) } else { (first, Some(second)) }
            }
        };
        let is_valid = |part: &[u8]| !part.is_empty() && !part.iter().any(|b| b"{}".contains(b));
        let all_valid = is_valid(key) && window.is_none_or(is_valid);
        (all_valid && name.len() <= MAX_NAME_BYTES).then_some(key)
    }

    /// A glob pattern of the server that matches all of the names, and some others.
    pub(super) fn glob(&self) -> Vec<u8> {
        let mut glob = Vec::new();
        let literal = |text: &str, glob: &mut Vec<u8>| {
            for byte in text.bytes() {
                if b"*?[]\\^".contains(&byte) {
                    glob.push(b'\\');
                }
                glob.push(byte);
            }
        };
        literal(&self.before, &mut glob);
        glob.push(b'*');
        if let Some((between, _)) = &self.window {
            literal(between, &mut glob);
            glob.push(b'*');
        }
        literal(&self.after, &mut glob);
        glob
    }

    /// The name of the hash beside the counters of a key: the namespace, the pattern with the key and
    /// without the window, and `data`. It has the slot of the counters.
    pub(super) fn data_name(&self, namespace: &str, key: &[u8]) -> Vec<u8> {
        let (first, between, second) = match &self.window {
            None => (key, "", &b""[..]),
            Some((between, true)) => (&b""[..], &**between, key),
            Some((between, false)) => (key, &**between, &b""[..]),
        };
        let parts =
            [self.before.as_bytes(), first, between.as_bytes(), second, self.after.as_bytes()];
        let mut name = parts.concat();
        while name.last() == Some(&b':') {
            name.pop();
        }
        if !self.has_braces() {
            name = [b"{", &name[..], b"}"].concat();
        }
        [namespace.as_bytes(), b":", &name, b":data"].concat()
    }

    /// Whether all counters of a key have one slot, so that one server of a cluster has all of them.
    pub(super) fn has_slot_per_key(&self) -> bool {
        let Some((tag, _)) = self.text.split_once('{').and_then(|(_, rest)| rest.split_once('}'))
        else {
            return self.window.is_none();
        };
        !tag.contains('*')
    }

    fn has_braces(&self) -> bool {
        self.text.contains('{')
    }
}

impl fmt::Display for CounterPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    text: Box<str>,
    remedy: &'static str,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no pattern of counters: {}", self.text, self.remedy)
    }
}

impl std::error::Error for PatternError {}

impl FromStr for CounterPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = |remedy| PatternError { text: text.into(), remedy };
        let Some((before, after)) = text.split_once(KEY) else {
            return Err(error("write KEY where the key is, as in {KEY}:*"));
        };
        if after.contains(KEY) {
            return Err(error("write KEY once"));
        }
        if text.matches('*').count() > 1 {
            return Err(error("write * once, where the window is"));
        }
        let braces: String = text.chars().filter(|c| matches!(c, '{' | '}')).collect();
        if !matches!(&*braces, "" | "{}") || text.contains("{}") {
            return Err(error("write one pair of braces with text in it, or none"));
        }
        let (before, window, after) = match (before.split_once('*'), after.split_once('*')) {
            (Some((before, between)), None) => (before, Some((between, true)), after),
            (None, Some((between, after))) => (before, Some((between, false)), after),
            _ => (before, None, after),
        };
        if window.is_some_and(|(between, _)| between.is_empty()) {
            return Err(error("write a separator between KEY and *, as in {KEY}:*"));
        }
        Ok(CounterPattern {
            text: text.into(),
            before: before.into(),
            window: window.map(|(between, is_first)| (between.into(), is_first)),
            after: after.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_testkit::slot_of;

    fn pattern(text: &str) -> CounterPattern {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_matched_and_have_a_key() {
        for (text, name, key) in [
            ("{KEY}:*", "{k}:17", Some("k")),
            ("{KEY}:*", "{user:42}:17", Some("user:42")),
            ("{KEY}:*", "{k}:17:18", Some("k")),
            ("{KEY}:*", "{k}:", None),
            ("{KEY}:*", "{}:17", None),
            ("{KEY}:*", "k:17", None),
            ("{KEY}:*", "{k}:data{x}", None),
            ("{KEY}:*", "tollgate:{k}:data", None),
            ("{ratelimit:KEY:}*", "{ratelimit:10.0.0.1:}1763640000", Some("10.0.0.1")),
            ("rl:KEY:*", "rl:ip:10.0.0.1:7", Some("ip:10.0.0.1")),
            ("rl:KEY:*", "rl:7", None),
            ("rl:KEY:*", "rl:::7", Some(":")),
            ("*:KEY", "7:ip:10.0.0.1", Some("ip:10.0.0.1")),
            ("hits:KEY", "hits:k", Some("k")),
            ("hits:KEY", "hits:", None),
            ("KEY.count", "k.count", Some("k")),
        ] {
            let found = pattern(text).key(name.as_bytes());
            assert_eq!(found, key.map(str::as_bytes), "{text} {name}");
        }
        let long = format!("{{{}}}:1", "k".repeat(MAX_NAME_BYTES));
        assert_eq!(pattern("{KEY}:*").key(long.as_bytes()), None);
    }

    #[test]
    fn invalid_patterns_state_the_remedy() {
        for (text, remedy) in [
            ("", "write KEY where"),
            ("{key}:*", "write KEY where"),
            ("KEY:KEY", "write KEY once"),
            ("KEY:*:*", "write * once"),
            ("{KEY", "write one pair of braces"),
            ("}KEY{", "write one pair of braces"),
            ("{a}{KEY}", "write one pair of braces"),
            ("{}KEY", "write one pair of braces"),
            ("KEY*", "write a separator"),
            ("*KEY", "write a separator"),
        ] {
            let error = text.parse::<CounterPattern>().unwrap_err().to_string();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn hashes_have_the_slot_of_their_counters() {
        for (text, name, data) in [
            ("{KEY}:*", "{k}:17", "n:{k}:data"),
            ("{ratelimit:KEY:}*", "{ratelimit:k:}17", "n:{ratelimit:k:}:data"),
            ("rl:{KEY}:*", "rl:{k}:17", "n:rl:{k}:data"),
            ("{app}:KEY:*", "{app}:k:17", "n:{app}:k:data"),
            ("hits:KEY", "hits:k", "n:{hits:k}:data"),
        ] {
            let pattern = pattern(text);
            let found = pattern.data_name("n", pattern.key(name.as_bytes()).unwrap());
            assert_eq!(found, data.as_bytes());
            assert_eq!(slot_of(&found), slot_of(name), "{text}");
            assert!(pattern.has_slot_per_key());
        }
        assert_eq!(pattern("*:{KEY}").data_name("n", b"k"), b"n::{k}:data");
        assert!(!pattern("rl:KEY:*").has_slot_per_key());
        assert!(!pattern("{KEY:*}").has_slot_per_key());
    }

    #[test]
    fn globs_match_literally() {
        assert_eq!(pattern("{KEY}:*").glob(), b"{*}:*");
        assert_eq!(pattern("a[b]?:KEY\\").glob(), br"a\[b\]\?:*\\");
    }
}
