//! The normalized path of a request, against which rules are matched.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::query::split_once;

/// A normalized path: without query and fragment, percent-decoded once, without dot segments, empty
/// segments and a trailing slash, with a leading slash. It may contain any bytes. Apart from the
/// leading slash it is never longer than the target that it is made of.
///
/// Invalid escapes, such as `%zz`, are left unchanged, as are escapes that decoding produces, such
/// as the `%61` of `%2561`.
///
/// This is one reading of a path; [`Readings`](crate::Readings) has those of other servers.
///
/// ```
/// use tollgate_rules::Path;
/// let path = Path::decoded(b"//api/./v1/../users%20a/?page=2");
/// assert_eq!(path.as_bytes(), b"/api/users a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    bytes: Cow<'a, [u8]>,
    case: PathCase,
}

/// Whether paths that differ only in the case of letters are different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathCase {
    /// `/Login` is not `/login`.
    #[default]
    Sensitive,
    /// `/Login` is `/login`.
    Insensitive,
}

impl<'a> Path<'a> {
    /// The path of a request target, in which an encoded slash is a slash.
    #[must_use]
    pub fn decoded(target: &'a [u8]) -> Self {
        let path = path_of(target);
        match as_plain(path) {
            Some(plain) => Path::from_clean(plain.into()),
            None => Path::clean(&percent_decode(path).collect::<Vec<_>>()),
        }
    }

    /// A path that is already normalized.
    pub(super) fn from_clean(bytes: Cow<'a, [u8]>) -> Self {
        Path { bytes, case: PathCase::Sensitive }
    }

    /// Removes dot segments, empty segments and the trailing slash from a decoded path.
    fn clean(decoded: &[u8]) -> Self {
        let mut clean = Vec::with_capacity(decoded.len() + 1);
        for segment in decoded.split(|byte| *byte == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => {
                    // At the root, `..` has no effect (RFC 3986, section 5.2.4).
                    let parent = clean.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                    clean.truncate(parent);
                }
                _ => {
                    clean.push(b'/');
                    clean.extend_from_slice(segment);
                }
            }
        }
        if clean.is_empty() {
            clean.push(b'/');
        }
        Path::from_clean(clean.into())
    }

    /// The same path in lower case, which matches patterns in any case.
    pub(super) fn fold_case(&mut self) {
        self.bytes = fold_case(std::mem::take(&mut self.bytes));
        self.case = PathCase::Insensitive;
    }

    /// Whether its case is folded.
    pub(super) fn case(&self) -> PathCase {
        self.case
    }

    /// The whole path, with its leading slash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The segments between the slashes; none is empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.bytes.split(|x| *x == b'/').filter(|part| !part.is_empty())
    }
}

/// Lower case: of all letters in valid UTF-8, otherwise of ASCII letters.
pub(super) fn fold_case(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match str::from_utf8(&bytes) {
        Ok(text) if text.chars().all(|x| x.to_lowercase().eq([x])) => bytes,
        Ok(text) => text.to_lowercase().into_bytes().into(),
        Err(_) => bytes.to_ascii_lowercase().into(),
    }
}

/// The path itself, without a trailing slash, if every server reads it alike.
pub(super) fn as_plain(path: &[u8]) -> Option<&[u8]> {
    let mut before = None;
    for (at, byte) in path.iter().enumerate() {
        let is_special = match byte {
            b'%' | b'\\' | b';' | b'#' => true,
            b'/' => matches!(before, Some(b'/' | b'.' | b' ')),
            b'.' => {
                let next = path.get(at + 1);
                before == Some(b'/') && matches!(next, None | Some(b'.' | b'/'))
            }
            _ => false,
        };
        if is_special {
            return None;
        }
        before = Some(*byte);
    }
    if !path.starts_with(b"/") || matches!(before, Some(b'.' | b' ')) {
        return None;
    }
    // The root keeps its slash.
    Some(path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(path))
}

/// The path of a target, without the query and without a fragment, which nginx also removes.
pub(super) fn path_of(target: &[u8]) -> &[u8] {
    let path = path_with_fragment(target);
    split_once(path, b'#').map_or(path, |(path, _)| path)
}

/// The path of a target as servers read it that know no fragments. A client may also send an
/// absolute form, `http://host/path`.
pub(super) fn path_with_fragment(target: &[u8]) -> &[u8] {
    let path = split_once(target, b'?').map_or(target, |(path, _)| path);
    let Some(at) = path.windows(3).position(|bytes| bytes == b"://") else { return path };
    let (scheme, rest) = path.split_at(at);
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if scheme.is_empty() || !scheme.iter().all(is_scheme) {
        return path;
    }
    let authority = rest.split_at(3).1;
    let end = authority.iter().position(|byte| matches!(byte, b'/' | b'#'));
    authority.split_at(end.unwrap_or(authority.len())).1
}

/// The query of a target.
pub(super) fn query_of(target: &[u8]) -> &[u8] {
    let target = split_once(target, b'#').map_or(target, |(target, _)| target);
    split_once(target, b'?').map_or(&[], |(_, query)| query)
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_normalized() {
        for (target, expected) in [
            ("/", "/"),
            ("", "/"),
            ("*", "/*"),
            ("login", "/login"),
            ("/login", "/login"),
            ("/login/", "/login"),
            ("//login", "/login"),
            ("/./login", "/login"),
            ("/a/../login", "/login"),
            ("/../../login", "/login"),
            ("/login/.", "/login"),
            ("/login/x/..", "/login"),
            ("/a/b/../../..", "/"),
            ("/%6Cogin", "/login"),
            ("/%6cogin", "/login"),
            ("/a/%2e%2E/login", "/login"),
            ("/a/.%2e/login", "/login"),
            ("/a%2Fb", "/a/b"),
            ("/a%2f..%2Flogin", "/login"),
            // Decoded only once.
            ("/%256Cogin", "/%6Cogin"),
            ("/a%252Fb", "/a%2Fb"),
            // Invalid escapes are unchanged.
            ("/%", "/%"),
            ("/%zz%2", "/%zz%2"),
            ("/100%/%6C", "/100%/l"),
            // The query, and what nginx treats as a fragment.
            ("/login?next=/a/../b", "/login"),
            ("/login?", "/login"),
            ("/login#?x", "/login"),
            ("/login%3Fx", "/login?x"),
            ("/login%23x", "/login#x"),
            ("?x", "/"),
            // The absolute form.
            ("http://host/login", "/login"),
            ("HTTP://host:1/a/../login?q", "/login"),
            ("http://host", "/"),
            ("http://host?/login", "/"),
            ("/http://host/login", "/http:/host/login"),
            // Three dots are an ordinary name.
            ("/.../..a/a..", "/.../..a/a.."),
            ("/Login", "/Login"),
            ("/login;v=1", "/login;v=1"),
        ] {
            let path = Path::decoded(target.as_bytes());
            assert_eq!(String::from_utf8_lossy(path.as_bytes()), expected, "{target}");
        }
        assert_eq!(Path::decoded(b"/%00%ff").as_bytes(), b"/\0\xff");
    }

    #[test]
    fn query_follows_the_first_question_mark() {
        for (target, expected) in
            [("/a", ""), ("/a?", ""), ("/a?b=c?d#e", "b=c?d"), ("/a#?b", ""), ("?b", "b")]
        {
            assert_eq!(query_of(target.as_bytes()), expected.as_bytes(), "{target}");
        }
    }

    fn paths() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop::sample::select(vec![
            "/", "//", ".", "..", "%2e", "%2F", "%2f", "%25", "%", "a", "b", "?", "#", "://",
            "%00", "%61", ";", "\\",
        ]);
        let spelled = prop::collection::vec(pieces, 0..24).prop_map(|x| x.concat().into_bytes());
        prop_oneof![spelled, prop::collection::vec(any::<u8>(), 0..64)]
    }

    proptest! {
        #[test]
        fn normalization_is_idempotent(target in paths()) {
            let path = Path::decoded(&target);
            let bytes = path.as_bytes();
            prop_assert!(bytes.len() <= target.len() + 1);
            prop_assert!(bytes.starts_with(b"/"));
            prop_assert_eq!(&Path::clean(bytes), &path);
            let dots = path.segments().any(|part| part == b"." || part == b"..");
            prop_assert!(!dots, "{:?}", path);
            let parts = path.segments().flat_map(|part| [b"/", part].concat());
            let joined: Vec<u8> = parts.collect();
            prop_assert!(bytes == b"/" || bytes == joined);
        }

        #[test]
        fn plain_paths_are_their_own_normal_form(target in paths()) {
            if let Some(plain) = as_plain(path_of(&target)) {
                let decoded: Vec<u8> = percent_decode(path_of(&target)).collect();
                let clean = Path::clean(&decoded);
                prop_assert_eq!(plain, clean.as_bytes());
            }
        }

        #[test]
        fn escaped_spellings_normalize_to_the_same_path(target in paths()) {
            let path = Path::decoded(&target);
            let escaped = percent_encode(path.as_bytes(), NON_ALPHANUMERIC).to_string();
            prop_assert_eq!(Path::decoded(escaped.as_bytes()), path);
        }

        #[test]
        fn targets_with_a_leading_slash_never_grow(target in paths()) {
            let target = [b"/", &*target].concat();
            prop_assert!(Path::decoded(&target).as_bytes().len() <= target.len());
        }
    }
}
