//! The paths that different servers read in the same request target.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::path::{Path, PathCase, as_plain, path_of, path_with_fragment};

/// All readings of a target: servers differ in what they decode, remove and resolve. Every rule
/// that matches one of them applies, so that no spelling selects a milder rule.
///
/// ```
/// use tollgate_rules::{PathCase, Readings};
/// let readings = Readings::new(b"/public/..;/login", PathCase::Sensitive).unwrap();
/// assert!(readings.iter().any(|path| path.as_bytes() == b"/login"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings<'a> {
    /// As most servers read it; borrowed if all servers do.
    first: Path<'a>,
    /// Each differs from all others.
    others: Vec<Path<'a>>,
}

/// A target with so many unusual spellings that it has more than [`Readings::MAX`] readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyReadings;

/// A set of choices in which a server can differ from most others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choices(u16);

impl Choices {
    /// `#` is part of the path.
    const FRAGMENT: u16 = 1;
    /// The name after `//` is a host, as in a reference of a URL.
    const AUTHORITY: u16 = 1 << 1;
    /// `;` begins parameters, which are not part of the segment.
    const PARAMETERS: u16 = 1 << 2;
    /// Escapes are decoded twice.
    const TWICE: u16 = 1 << 3;
    /// `%2F` is no separator. It is written `%2F` in its segment.
    const ENCODED_SLASH: u16 = 1 << 4;
    /// `\` is a separator.
    const BACKSLASH: u16 = 1 << 5;
    /// Dots and spaces at the end of a segment are ignored.
    const TRIM: u16 = 1 << 6;
    /// `..` removes an empty segment too.
    const UNMERGED: u16 = 1 << 7;
    /// `.` and `..` are ordinary names.
    const LITERAL_DOTS: u16 = 1 << 8;
    /// An escaped `?`, `#` or NUL ends the path.
    const ESCAPED_END: u16 = 1 << 9;
    /// UTF-8 sequences that are longer than necessary are ASCII characters.
    const OVERLONG: u16 = 1 << 10;

    fn has(self, choice: u16) -> bool {
        self.0 & choice != 0
    }

    /// The choices that can matter for a target.
    fn relevant(target: &[u8]) -> Self {
        let path = path_with_fragment(target);
        // Returns also whether there are sequences that are longer than necessary.
        let decode = |bytes: &[u8]| {
            let bytes: Vec<u8> = percent_decode(bytes).collect();
            let decoded = without_overlong(&bytes);
            let has_overlong = decoded.len() < bytes.len();
            (decoded, has_overlong)
        };
        let (once, has_overlong) = decode(path);
        let (twice, has_nested_overlong) = decode(&once);
        let ends = |bytes: &[u8]| bytes.iter().filter(|byte| is_end(**byte)).count();
        let is_separator = |byte: u8| matches!(byte, b'/' | b'\\');
        let has_pair = |bytes: &[u8], is_second: fn(u8) -> bool| {
            bytes.windows(2).any(|pair| matches!(pair, [x, y] if is_separator(*x) && is_second(*y)))
        };
        let has_slash =
            |bytes: &[u8]| bytes.windows(3).any(|escape| escape.eq_ignore_ascii_case(b"%2f"));
        let mut segments = twice.split(|byte| is_separator(*byte)).map(without_parameters);
        let has_dots = segments.clone().any(is_dots);
        let has_end =
            segments.any(|part| !is_dots(part) && part.ends_with(b".") | part.ends_with(b" "));
        let begins_with_two = matches!(path, [x, y, ..] if is_separator(*x) && is_separator(*y));
        let is_empty_part = |byte| matches!(byte, b'/' | b'\\' | b';');
        let choices = [
            (Self::FRAGMENT, path.contains(&b'#')),
            (Self::AUTHORITY, begins_with_two),
            (Self::PARAMETERS, twice.contains(&b';')),
            (Self::TWICE, once != twice),
            (Self::ENCODED_SLASH, has_slash(path) || has_slash(&once)),
            (Self::BACKSLASH, twice.contains(&b'\\')),
            (Self::TRIM, has_end),
            (Self::UNMERGED, has_dots && has_pair(&twice, is_empty_part)),
            (Self::LITERAL_DOTS, has_dots),
            (Self::ESCAPED_END, ends(&twice) > ends(path)),
            (Self::OVERLONG, has_overlong || has_nested_overlong),
        ];
        Choices(choices.iter().filter(|(_, is_relevant)| *is_relevant).map(|(x, _)| x).sum())
    }

    /// Every subset, the empty one first.
    fn subsets(self) -> impl Iterator<Item = Choices> {
        let mask = self.0;
        let next = move |set: &u16| (*set != mask).then(|| (set | !mask).wrapping_add(1) & mask);
        std::iter::successors(Some(0), next).map(Choices)
    }

    fn read(self, target: &[u8]) -> Path<'static> {
        let mut path =
            if self.has(Self::FRAGMENT) { path_with_fragment(target) } else { path_of(target) };
        if self.has(Self::AUTHORITY) {
            path = without_authority(path);
        }
        let mut bytes = self.split_segments(path.into());
        for _ in 0..=u8::from(self.has(Self::TWICE)) {
            bytes = self.split_segments(self.decode(&bytes).into());
        }
        Path::from_clean(self.resolve(&bytes).into())
    }

    /// Applies what a server does before and after it decodes.
    fn split_segments<'b>(self, mut bytes: Cow<'b, [u8]>) -> Cow<'b, [u8]> {
        if self.has(Self::OVERLONG) {
            bytes = without_overlong(&bytes).into();
        }
        if self.has(Self::ESCAPED_END)
            && let Some(end) = bytes.iter().position(|byte| is_end(*byte))
        {
            bytes.to_mut().truncate(end);
        }
        if self.has(Self::BACKSLASH) && bytes.contains(&b'\\') {
            let slash = |byte: &u8| if *byte == b'\\' { b'/' } else { *byte };
            bytes = bytes.iter().map(slash).collect();
        }
        if self.has(Self::PARAMETERS) && bytes.contains(&b';') {
            let segments: Vec<_> =
                bytes.split(|byte| *byte == b'/').map(without_parameters).collect();
            return segments.join(&b'/').into();
        }
        bytes
    }

    fn decode(self, bytes: &[u8]) -> Vec<u8> {
        if !self.has(Self::ENCODED_SLASH) {
            return percent_decode(bytes).collect();
        }
        // `%%2F` contains one valid escape, which begins at the second percent sign.
        let (mut rest, mut decoded) = (bytes, Vec::with_capacity(bytes.len()));
        while let Some(at) = rest.windows(3).position(|x| x.eq_ignore_ascii_case(b"%2f")) {
            let (before, after) = rest.split_at(at);
            decoded.extend(percent_decode(before));
            decoded.extend_from_slice(b"%2F");
            rest = after.split_at(3).1;
        }
        decoded.extend(percent_decode(rest));
        decoded
    }

    /// Resolves dot segments and removes empty segments.
    fn resolve(self, bytes: &[u8]) -> Vec<u8> {
        let mut segments: Vec<&[u8]> = Vec::new();
        let bytes = bytes.strip_prefix(b"/").unwrap_or(bytes);
        for segment in bytes.split(|byte| *byte == b'/') {
            match segment {
                b"." if !self.has(Self::LITERAL_DOTS) => {}
                // At the root, `..` has no effect (RFC 3986, section 5.2.4).
                b".." if !self.has(Self::LITERAL_DOTS) => drop(segments.pop()),
                b"" if !self.has(Self::UNMERGED) => {}
                _ if self.has(Self::TRIM) && !is_dots(segment) => segments.push(trimmed(segment)),
                _ => segments.push(segment),
            }
        }
        let mut path = Vec::with_capacity(bytes.len() + 1);
        for segment in segments.into_iter().filter(|segment| !segment.is_empty()) {
            path.push(b'/');
            path.extend_from_slice(segment);
        }
        if path.is_empty() { vec![b'/'] } else { path }
    }
}

impl<'a> Readings<'a> {
    /// The most readings of a target.
    pub const MAX: usize = 32;
    /// The most choices; each doubles the number of readings.
    const MAX_CHOICES: u32 = Self::MAX.ilog2();

    /// Reads the path of a request target.
    ///
    /// # Errors
    /// The target has too many readings.
    pub fn new(target: &'a [u8], case: PathCase) -> Result<Self, TooManyReadings> {
        let path = path_with_fragment(target);
        let mut readings = match as_plain(path) {
            Some(plain) => Readings { first: Path::from_clean(plain.into()), others: Vec::new() },
            None => Self::from_special(target)?,
        };
        if case == PathCase::Insensitive {
            readings.first.fold_case();
            readings.others.iter_mut().for_each(Path::fold_case);
        }
        Ok(readings)
    }

    fn from_special(target: &[u8]) -> Result<Self, TooManyReadings> {
        let choices = Choices::relevant(target);
        if choices.0.count_ones() > Self::MAX_CHOICES {
            return Err(TooManyReadings);
        }
        let first = Choices(0).read(target);
        let mut others = Vec::new();
        for choices in choices.subsets().skip(1) {
            let path = choices.read(target);
            if path != first && !others.contains(&path) {
                others.push(path);
            }
        }
        Ok(Readings { first, others })
    }

    /// The readings; the first is that of most servers.
    pub fn iter(&self) -> impl Iterator<Item = &Path<'a>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Whether servers may read the path differently.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        !self.others.is_empty()
    }
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'?' | b'#' | 0)
}

/// Replaces each UTF-8 sequence that encodes an ASCII character in more than one byte.
fn without_overlong(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut decoded) = (bytes, Vec::with_capacity(bytes.len()));
    while let [first, after @ ..] = rest {
        let (character, after) = match rest {
            [0xC0, x @ 0x80..=0xBF, after @ ..] | [0xE0, 0x80, x @ 0x80..=0xBF, after @ ..] => {
                (x & 0x3F, after)
            }
            [0xC1, x @ 0x80..=0xBF, after @ ..] | [0xE0, 0x81, x @ 0x80..=0xBF, after @ ..] => {
                (x & 0x3F | 0x40, after)
            }
            [0xF0, 0x80, 0x80, x @ 0x80..=0xBF, after @ ..] => (x & 0x3F, after),
            [0xF0, 0x80, 0x81, x @ 0x80..=0xBF, after @ ..] => (x & 0x3F | 0x40, after),
            _ => (*first, after),
        };
        decoded.push(character);
        rest = after;
    }
    decoded
}

fn is_dots(segment: &[u8]) -> bool {
    matches!(segment, b"." | b"..")
}

fn trimmed(segment: &[u8]) -> &[u8] {
    let end = segment.iter().rposition(|byte| !matches!(byte, b'.' | b' '));
    segment.split_at(end.map_or(0, |end| end + 1)).0
}

fn without_parameters(segment: &[u8]) -> &[u8] {
    let end = segment.iter().position(|byte| *byte == b';').unwrap_or(segment.len());
    segment.split_at(end).0
}

/// The path after `//host`.
fn without_authority(path: &[u8]) -> &[u8] {
    let is_separator = |byte: &u8| matches!(byte, b'/' | b'\\');
    let begin = path.iter().position(|byte| !is_separator(byte)).unwrap_or(path.len());
    let rest = path.split_at(begin).1;
    let end = rest.iter().position(is_separator).unwrap_or(rest.len());
    rest.split_at(end).1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn readings(target: &str) -> Vec<String> {
        let readings = Readings::new(target.as_bytes(), PathCase::Sensitive).unwrap();
        readings.iter().map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn plain_paths_have_one_reading_and_are_borrowed() {
        for target in ["/", "/login", "/login/?a=/../b;c", "/.well-known/a.b/c..d", "/a b/ü"] {
            let readings = Readings::new(target.as_bytes(), PathCase::Sensitive).unwrap();
            assert!(!readings.is_ambiguous(), "{target}");
            let range = target.as_bytes().as_ptr_range();
            assert!(range.contains(&readings.first.as_bytes().as_ptr()), "{target}");
        }
    }

    #[test]
    fn spellings_have_the_readings_of_servers() {
        for (target, expected) in [
            ("/a//b", &["/a/b"][..]),
            ("/a%20b", &["/a b"]),
            ("http://host/a", &["/a"]),
            ("/login;x=1", &["/login;x=1", "/login"]),
            ("/login%3Bx", &["/login;x", "/login"]),
            ("/a%2fb", &["/a/b", "/a%2Fb"]),
            ("/a\\b", &["/a\\b", "/a/b"]),
            ("/a%5Cb", &["/a\\b", "/a/b"]),
            ("/%256cogin", &["/%6cogin", "/login"]),
            ("/login.", &["/login.", "/login"]),
            ("/login%20/x", &["/login /x", "/login/x"]),
            ("//h/login", &["/h/login", "/login"]),
            ("/a/../login", &["/login", "/a/../login"]),
            ("/a/%2e%2e/login", &["/login", "/a/../login"]),
            ("/login#x", &["/login", "/login#x"]),
            ("/login%3Fx", &["/login?x", "/login"]),
            ("/login%23x", &["/login#x", "/login"]),
            ("/login%00.json", &["/login\0.json", "/login"]),
            ("/login%253F", &["/login%3F", "/login?", "/login"]),
            ("/login/x//../..", &["/", "/login", "/login/x/../.."]),
        ] {
            assert_eq!(readings(target), expected, "{target}");
        }
    }

    #[test]
    fn findings_of_the_review_have_the_reading_login() {
        for target in [
            "/login/x//../..",
            "/a\\..\\login",
            "/login\\",
            "//h/login",
            "/login;x=1",
            "/a/..;/login",
            "/a/..;x=1/login",
            "/a%5c..%5Clogin",
            "/a%2F..%2flogin",
            "/%252e%252e/login",
            "/a/%252e%252e%252flogin",
            "/login.",
            "/login%20",
            "/login/.",
            "/x/;/../../login",
            "/\\h/login",
            "/login;%2Fx",
            "/x/..%C0%AFlogin",
            "/x/%c0%ae%C0%AE/login",
            "/x%C1%9C..%c1%9clogin",
            "/x/..%E0%80%AFlogin",
            "/x/..%F0%80%80%AFlogin",
            "/%C1%ACogin",
            "/login%C0%80x",
            "/login%25C0%25AF",
            "/login%3F/../x",
        ] {
            assert!(readings(target).iter().any(|path| path == "/login"), "{target}");
        }
    }

    #[test]
    fn number_of_readings_is_bounded() {
        let everything = b"//a%252fb;c\\..#d./";
        assert_eq!(Readings::new(everything, PathCase::Sensitive), Err(TooManyReadings));
    }

    proptest! {
        #[test]
        fn readings_differ_and_begin_with_the_path(target in "[/.;%2Fe5Cc\\\\#a ]{0,24}") {
            if let Ok(readings) = Readings::new(target.as_bytes(), PathCase::Sensitive) {
                prop_assert_eq!(&readings.first, &Path::decoded(target.as_bytes()));
                let paths: Vec<_> = readings.iter().collect();
                prop_assert!(paths.len() <= Readings::MAX);
                for (at, path) in paths.iter().enumerate() {
                    prop_assert!(path.as_bytes().starts_with(b"/"));
                    prop_assert!(path.as_bytes().len() <= target.len() + 1);
                    prop_assert!(!paths[..at].contains(path));
                }
            }
        }
    }
}
