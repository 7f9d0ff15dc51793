//! The normalized path of a request, against which rules are matched.

use percent_encoding::percent_decode;

use super::query::split_once;

/// A normalized path: without query and fragment, percent-decoded once, without dot segments, empty
/// segments and a trailing slash, with a leading slash. It may contain any bytes. Apart from the
/// leading slash it is never longer than the target that it is made of.
///
/// Invalid escapes, such as `%zz`, are left unchanged, as are escapes that decoding produces, such
/// as the `%61` of `%2561`.
///
/// ```
/// use tollgate_rules::Path;
/// let path = Path::decoded(b"//api/./v1/../users%20a/?page=2");
/// assert_eq!(path.as_bytes(), b"/api/users a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<u8>);

impl Path {
    /// The path of a request target, in which an encoded slash is a slash.
    #[must_use]
    pub fn decoded(target: &[u8]) -> Path {
        Path::clean(&percent_decode(path_of(target)).collect::<Vec<_>>())
    }

    /// The path of a request target, in which an encoded slash is part of its segment and is
    /// written `%2F`. Returns `None` if no slash is encoded.
    ///
    /// Servers differ in how they read such a path, and clients must not exploit that: the rules
    /// for both readings apply.
    #[must_use]
    pub fn with_encoded_slashes(target: &[u8]) -> Option<Path> {
        let path = path_of(target);
        // `%%2F` contains one valid escape, which begins at the second percent sign.
        let mut rest = path;
        let mut decoded = Vec::new();
        let mut found = false;
        while let Some(at) = rest.windows(3).position(|x| x.eq_ignore_ascii_case(b"%2f")) {
            let (before, after) = rest.split_at(at);
            decoded.extend(percent_decode(before));
            decoded.extend_from_slice(b"%2F");
            rest = after.split_at(3).1;
            found = true;
        }
        decoded.extend(percent_decode(rest));
        found.then(|| Path::clean(&decoded))
    }

    /// Removes dot segments, empty segments and the trailing slash from a decoded path.
    fn clean(decoded: &[u8]) -> Path {
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
        Path(clean)
    }

    /// The whole path, with its leading slash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The segments between the slashes; none is empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.split(|x| *x == b'/').filter(|part| !part.is_empty())
    }
}

/// The path of a target, without the query and without a fragment, which nginx also removes. A
/// client may also send an absolute form, `http://host/path`.
fn path_of(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let path = target.split_at(end).0;
    let Some(at) = path.windows(3).position(|bytes| bytes == b"://") else { return path };
    let (scheme, rest) = path.split_at(at);
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if scheme.is_empty() || !scheme.iter().all(is_scheme) {
        return path;
    }
    let authority = rest.split_at(3).1;
    let end = authority.iter().position(|byte| *byte == b'/').unwrap_or(authority.len());
    authority.split_at(end).1
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
    fn encoded_slashes_can_be_kept_in_their_segment() {
        for (target, expected) in [
            ("/a/b", None),
            ("/a?x=%2F", None),
            ("/a%252Fb", None),
            ("/a%2fb", Some("/a%2Fb")),
            ("/%61%2Fb%20c/d%2F", Some("/a%2Fb c/d%2F")),
            ("/public/..%2Flogin", Some("/public/..%2Flogin")),
            ("/a/%2F", Some("/a/%2F")),
            ("/%%2F", Some("/%%2F")),
        ] {
            let path = Path::with_encoded_slashes(target.as_bytes());
            let path = path.as_ref().map(|path| String::from_utf8_lossy(path.as_bytes()));
            assert_eq!(path.as_deref(), expected, "{target}");
        }
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
            let both = [Some(Path::decoded(&target)), Path::with_encoded_slashes(&target)];
            for path in both.into_iter().flatten() {
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
