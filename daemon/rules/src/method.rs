//! The methods that a rule matches.

use std::fmt;

/// The name of a method, case-insensitive. `GET` also matches `HEAD`, which costs a backend as
/// much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName(Box<str>);

impl MethodName {
    /// Parses a name such as `POST`.
    ///
    /// # Errors
    /// The text is not a method; the error states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        match http::Method::from_bytes(upper.as_bytes()) {
            Ok(method) => Ok(MethodName(method.as_str().into())),
            Err(_) => Err("expected a method such as GET or POST; omit the field to match all \
                           methods"
                .to_owned()),
        }
    }

    pub(super) fn matches(&self, method: &str) -> bool {
        let is_head = || &*self.0 == "GET" && method.eq_ignore_ascii_case("HEAD");
        method.eq_ignore_ascii_case(&self.0) || is_head()
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_matches_head_and_case_is_ignored() {
        for (name, method, matches) in [
            ("GET", "GET", true),
            ("get", "GET", true),
            ("GET", "get", true),
            ("GET", "HEAD", true),
            ("HEAD", "GET", false),
            ("POST", "GET", false),
            ("PURGE", "PURGE", true),
        ] {
            assert_eq!(
                MethodName::parse(name).unwrap().matches(method),
                matches,
                "{name} {method}"
            );
        }
        for text in ["", "GET POST", "GET,POST", "ü"] {
            let remedy = "expected a method such as GET or POST; omit the field to match all \
                          methods";
            assert_eq!(MethodName::parse(text).unwrap_err(), remedy, "{text}");
        }
    }
}
