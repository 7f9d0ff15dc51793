//! The methods that a rule is for.

use std::fmt;

/// The name of a method. `GET` is `HEAD` too, which costs a backend as much; letter case makes no
/// difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName(Box<str>);

impl MethodName {
    /// Reads a name such as `POST`.
    ///
    /// # Errors
    /// It is no name of a method; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        match http::Method::from_bytes(upper.as_bytes()) {
            Ok(method) => Ok(MethodName(method.as_str().into())),
            Err(_) => Err("write a method such as GET or POST; leave it out for all".to_owned()),
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
    fn a_method_is_its_name() {
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
            let remedy = "write a method such as GET or POST; leave it out for all";
            assert_eq!(MethodName::parse(text).unwrap_err(), remedy, "{text}");
        }
    }
}
