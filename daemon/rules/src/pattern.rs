//! Patterns of paths.

use std::fmt;

use super::path::Path;

/// A pattern of paths: `*` is one segment, `**` any number of them or none, and within a segment `*`
/// is any text. The rest is itself, letter case included. A slash at the end makes no difference.
///
/// ```
/// use tollgate_rules::{Path, PathPattern};
/// let pattern = PathPattern::parse("/api/**").unwrap();
/// assert!(pattern.matches(&Path::decoded(b"/api/v1/users?page=2")));
/// assert!(!pattern.matches(&Path::decoded(b"/apis")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`
    Many,
    /// `*`
    One,
    Text(Box<[u8]>),
    /// Text with stars between its parts, of which there are two at least.
    Stars(Box<[Box<[u8]>]>),
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// No path could ever match it, or not as it is meant; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err("write a path from its first slash on, such as /api/**".to_owned());
        };
        if text.contains(['?', '#']) {
            return Err("write the path without its query; paths are matched without it".to_owned());
        }
        if let Some(escape) = escape_in(text) {
            let plain = percent_encoding::percent_decode_str(escape).decode_utf8_lossy();
            return Err(format!("write {plain:?} itself, not {escape}; paths are decoded first"));
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Ok(PathPattern(Vec::new()));
        }
        rest.split('/').map(Segment::parse).collect::<Result<_, _>>().map(PathPattern)
    }

    /// Whether a path is one of them; in time linear in the path's length.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        let pattern = &self.0;
        let mut segments = path.segments();
        // Where the pattern stands, and where to go on from if it does not fit: after the last `**`,
        // with one more segment left to it. An earlier one never needs to give way.
        let mut at = 0;
        let mut again = None;
        loop {
            let before = segments.clone();
            match (pattern.get(at), segments.next()) {
                (Some(Segment::Many), _) => {
                    at += 1;
                    segments = before.clone();
                    again = Some((at, before));
                }
                (Some(value), Some(segment)) if value.matches(segment) => at += 1,
                (None, None) => return true,
                (_, None) => return false,
                (_, Some(_)) => {
                    let Some((after, rest)) = &mut again else { return false };
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
            "" => Err("write one slash where there are two; they are merged first".to_owned()),
            "." | ".." => Err("leave . and .. out; they are resolved first".to_owned()),
            "*" => Ok(Segment::One),
            "**" => Ok(Segment::Many),
            _ if text.contains("**") => Err("write ** as a segment of its own, as /**/".to_owned()),
            _ if text.contains('*') => {
                Ok(Segment::Stars(text.split('*').map(|part| part.as_bytes().into()).collect()))
            }
            _ => Ok(Segment::Text(text.as_bytes().into())),
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

/// The first part stands at the beginning, the last at the end, the others in their order between.
fn matches_parts(parts: &[Box<[u8]>], text: &[u8]) -> bool {
    let [first, between @ .., last] = parts else { return false };
    let Some(mut rest) = text.strip_prefix(&**first).and_then(|text| text.strip_suffix(&**last))
    else {
        return false;
    };
    for part in between.iter().filter(|between| !between.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|pair| *pair == **part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// The first percent-escape.
fn escape_in(text: &str) -> Option<&str> {
    text.match_indices('%').find_map(|(at, _)| {
        let digits = text.get(at + 1..at + 3)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| text.get(at..at + 3))?
    })
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        for segment in &self.0 {
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
    fn a_pattern_matches_whole_paths() {
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
            // A name with any ending: the limit on /sessions holds for /sessions.json.
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
    fn what_could_never_match_is_refused() {
        for (text, remedy) in [
            ("", "write a path from its first slash on, such as /api/**"),
            ("api/**", "write a path from its first slash on, such as /api/**"),
            ("/a?b=*", "write the path without its query; paths are matched without it"),
            ("/a%20b", "write \" \" itself, not %20; paths are decoded first"),
            ("/a//b", "write one slash where there are two; they are merged first"),
            ("/a/../b", "leave . and .. out; they are resolved first"),
            ("/a**", "write ** as a segment of its own, as /**/"),
        ] {
            assert_eq!(PathPattern::parse(text).unwrap_err(), remedy, "{text}");
        }
    }

    /// The rule in the plainest words, in any time it likes.
    fn plainly(pattern: &[Segment], path: &[&[u8]]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            ([Segment::Many, rest @ ..], _) => {
                (0..=path.len()).any(|skipped| plainly(rest, &path[skipped..]))
            }
            ([value, rest @ ..], [first, others @ ..]) => {
                value.matches(first) && plainly(rest, others)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_the_plain_rule_matches(
            pattern in "(/(\\*|\\*\\*|a|b|a\\*)){0,6}",
            path in "(/(a|b|ab)){0,8}",
        ) {
            let text = if pattern.is_empty() { "/" } else { &*pattern };
            let pattern = PathPattern::parse(text).unwrap();
            prop_assert_eq!(pattern.to_string(), text);
            let path = Path::decoded(path.as_bytes());
            let segments: Vec<_> = path.segments().collect();
            prop_assert_eq!(pattern.matches(&path), plainly(&pattern.0, &segments));
        }
    }

    /// Backtracking over every `**` would take longer than anyone waits.
    #[test]
    fn a_path_of_a_hundred_thousand_segments_takes_linear_time() {
        let pattern = PathPattern::parse(&"/**/a/*a*a*".repeat(16)).unwrap();
        assert!(!pattern.matches(&Path::decoded("/a".repeat(100_000).as_bytes())));
        let pattern = PathPattern::parse(&format!("{}/b", "/**/a".repeat(32))).unwrap();
        assert!(!pattern.matches(&Path::decoded("/a".repeat(100_000).as_bytes())));
        let pattern = PathPattern::parse(&format!("/{}b", "a*".repeat(32))).unwrap();
        assert!(!pattern.matches(&Path::decoded(format!("/{}", "a".repeat(100_000)).as_bytes())));
    }
}
