//! Path patterns.

use std::fmt;

use super::path::{Path, PathCase, fold_case};

/// A path pattern: `*` matches one segment, `**` any number of segments, and `*` within a segment
/// any text. All other text matches itself. A trailing slash is ignored.
///
/// ```
/// use tollgate_rules::{Path, PathPattern};
/// let pattern = PathPattern::parse("/api/**").unwrap();
/// assert!(pattern.matches(&Path::decoded(b"/api/v1/users?page=2")));
/// assert!(!pattern.matches(&Path::decoded(b"/apis")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Segment>,
    /// The same in lower case, for [`PathCase::Insensitive`].
    folded: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`
    Many,
    /// `*`
    One,
    Text(Box<[u8]>),
    /// Text with stars between at least two parts.
    Stars(Box<[Box<[u8]>]>),
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// No normalized path could match the pattern; the error states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err("a path begins with a slash, as in /api/**".to_owned());
        };
        if text.contains(['?', '#']) {
            return Err("paths are matched without their query; remove it".to_owned());
        }
        if let Some(escape) = escape_in(text) {
            let plain = percent_encoding::percent_decode_str(escape).decode_utf8_lossy();
            return Err(format!(
                "paths are decoded before they are matched; write {plain:?} instead of {escape}"
            ));
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Ok(PathPattern { segments: Vec::new(), folded: Vec::new() });
        }
        let segments: Vec<_> = rest.split('/').map(Segment::parse).collect::<Result<_, _>>()?;
        let folded = segments.iter().map(Segment::fold_case).collect();
        Ok(PathPattern { segments, folded })
    }

    /// Whether a path matches, in time linear in the length of the path.
    #[must_use]
    pub fn matches(&self, path: &Path<'_>) -> bool {
        let pattern = match path.case() {
            PathCase::Sensitive => &self.segments,
            PathCase::Insensitive => &self.folded,
        };
        let mut segments = path.segments();
        // The position in the pattern, and where to resume after a mismatch: after the last `**`,
        // which takes one more segment. Earlier `**` never need to be revisited.
        let mut at = 0;
        let mut resume = None;
        loop {
            let before = segments.clone();
            match (pattern.get(at), segments.next()) {
                (Some(Segment::Many), _) => {
                    at += 1;
                    segments = before.clone();
                    resume = Some((at, before));
                }
                (Some(value), Some(segment)) if value.matches(segment) => at += 1,
                (None, None) => return true,
                (_, None) => return false,
                (_, Some(_)) => {
                    let Some((after, rest)) = &mut resume else { return false };
                    rest.next();
                    at = *after;
                    segments = rest.clone();
                }
            }
        }
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => {
                Err("repeated slashes are merged before paths are matched; write one slash"
                    .to_owned())
            }
            "." | ".." => {
                Err(". and .. are resolved before paths are matched; remove them".to_owned())
            }
            "*" => Ok(Segment::One),
            "**" => Ok(Segment::Many),
            _ if text.contains("**") => {
                Err("** must be a segment of its own, as in /**/".to_owned())
            }
            _ if text.contains('*') => {
                Ok(Segment::Stars(text.split('*').map(|part| part.as_bytes().into()).collect()))
            }
            _ => Ok(Segment::Text(text.as_bytes().into())),
        }
    }

    fn fold_case(&self) -> Self {
        let fold = |text: &[u8]| fold_case(text.into()).into();
        match self {
            Segment::Many => Segment::Many,
            Segment::One => Segment::One,
            Segment::Text(text) => Segment::Text(fold(text)),
            Segment::Stars(parts) => Segment::Stars(parts.iter().map(|part| fold(part)).collect()),
        }
    }

    fn matches(&self, segment: &[u8]) -> bool {
        match self {
            Segment::Many | Segment::One => true,
            Segment::Text(text) => **text == *segment,
            Segment::Stars(parts) => matches_parts(parts, segment),
        }
    }
}

/// Whether the text begins with the first part, ends with the last and contains the others in order
/// between them.
fn matches_parts(parts: &[Box<[u8]>], text: &[u8]) -> bool {
    let [first, between @ .., last] = parts else { return false };
    let Some(mut rest) = text.strip_prefix(&**first).and_then(|text| text.strip_suffix(&**last))
    else {
        return false;
    };
    for part in between.iter().filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|bytes| *bytes == **part) else {
            return false;
        };
        rest = rest.split_at(at + part.len()).1;
    }
    true
}

/// The first percent escape.
fn escape_in(text: &str) -> Option<&str> {
    text.match_indices('%').find_map(|(at, _)| {
        let digits = text.get(at + 1..at + 3)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| text.get(at..at + 3))?
    })
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        for segment in &self.segments {
            match segment {
                Segment::Many => f.write_str("/**")?,
                Segment::One => f.write_str("/*")?,
                Segment::Text(text) => write!(f, "/{}", String::from_utf8_lossy(text))?,
                Segment::Stars(parts) => {
                    let parts: Vec<_> =
                        parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
                    write!(f, "/{}", parts.join("*"))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, matching, others) in [
            ("/", "/ //", "/a"),
            ("/login", "/login /login/ //login /a/../login /%6cogin /login?x", "/ /Login /login/x"),
            ("/login/", "/login /login/", "/login/x"),
            ("/*", "/a /a/ /%20", "/ /a/b"),
            ("/**", "/ /a /a/b/c", ""),
            ("/api/**", "/api /api/ /api/a /api/a/b", "/apis /a/api /"),
            ("/api/*/x", "/api/a/x", "/api/x /api/a/b/x /api//x"),
            ("/**/x", "/x /a/x /a/b/x /x/x", "/ /a /x/a"),
            ("/**/a/b", "/a/b /a/a/b /a/b/a/b", "/a/b/a /b"),
            ("/a/**/b/**/c", "/a/b/c /a/x/b/y/c /a/b/b/c/c", "/a/c/b /a/b/c/d /b/c"),
            ("/**/*/x", "/a/x /a/b/x", "/x"),
            ("/*/**", "/a /a/b", "/"),
            // A name with any ending: the limit on /sessions also applies to /sessions.json.
            ("/sessions*", "/sessions /sessions.json /sessions;v=1", "/sessions/1 /session"),
            ("/*.php", "/x.php /.php", "/x.phps /a/x.php"),
            ("/a*b*c", "/abc /aXbYc /abbc", "/ab /ac /acb"),
            ("/aa*aa", "/aaaa /aa-aa", "/aaa /aa"),
            ("/a b/ü", "/a%20b/%C3%BC", "/a+b/ü"),
            ("/100%", "/100% /100%25", "/100"),
        ] {
            let pattern = PathPattern::parse(pattern).unwrap();
            for (paths, expected) in [(matching, true), (others, false)] {
                for path in paths.split(' ').filter(|part| !part.is_empty()) {
                    let matches = pattern.matches(&Path::decoded(path.as_bytes()));
                    assert_eq!(matches, expected, "{pattern} {path}");
                }
            }
        }
    }

    #[test]
    fn patterns_that_cannot_match_are_rejected() {
        for (text, remedy) in [
            ("", "a path begins with a slash, as in /api/**"),
            ("api/**", "a path begins with a slash, as in /api/**"),
            ("/a?b=*", "paths are matched without their query; remove it"),
            ("/a%20b", "paths are decoded before they are matched; write \" \" instead of %20"),
            ("/a//b", "repeated slashes are merged before paths are matched; write one slash"),
            ("/a/../b", ". and .. are resolved before paths are matched; remove them"),
            ("/a**", "** must be a segment of its own, as in /**/"),
        ] {
            assert_eq!(PathPattern::parse(text).unwrap_err(), remedy, "{text}");
        }
    }

    /// The same rule as a simple recursion, without regard to time.
    fn matches_recursively(pattern: &[Segment], path: &[&[u8]]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            ([Segment::Many, rest @ ..], _) => {
                (0..=path.len()).any(|skipped| matches_recursively(rest, &path[skipped..]))
            }
            ([value, rest @ ..], [first, others @ ..]) => {
                value.matches(first) && matches_recursively(rest, others)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_recursive_definition(
            pattern in "(/(\\*|\\*\\*|a|b|a\\*)){0,6}",
            path in "(/(a|b|ab)){0,8}",
        ) {
            let text = if pattern.is_empty() { "/" } else { &*pattern };
            let pattern = PathPattern::parse(text).unwrap();
            prop_assert_eq!(pattern.to_string(), text);
            let path = Path::decoded(path.as_bytes());
            let segments: Vec<_> = path.segments().collect();
            prop_assert_eq!(pattern.matches(&path), matches_recursively(&pattern.segments, &segments));
        }
    }

    /// Backtracking over every `**` would take exponential time.
    #[test]
    fn matching_takes_linear_time_in_the_number_of_segments() {
        let pattern = PathPattern::parse(&"/**/a/*a*a*".repeat(16)).unwrap();
        assert!(!pattern.matches(&Path::decoded("/a".repeat(100_000).as_bytes())));
        let pattern = PathPattern::parse(&format!("{}/b", "/**/a".repeat(32))).unwrap();
        assert!(!pattern.matches(&Path::decoded("/a".repeat(100_000).as_bytes())));
        let pattern = PathPattern::parse(&format!("/{}b", "a*".repeat(32))).unwrap();
        assert!(!pattern.matches(&Path::decoded(format!("/{}", "a".repeat(100_000)).as_bytes())));
    }
}
