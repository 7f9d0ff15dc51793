//! The path of a request, in the one spelling that rules are matched against.

use percent_encoding::percent_decode;

/// A path in one spelling: without query or fragment, percent-decoded once, without dot segments,
/// empty segments or a slash at its end, with a slash at its beginning. It is any bytes, and but for
/// that first slash never longer than what it was made of.
///
/// What is no escape, such as `%zz`, stays as it is written; so does what decoding brings to light,
/// such as the `%61` of `%2561`.
///
/// ```
/// use tollgate_rules::Path;
/// let path = Path::decoded(b"//api/./v1/../users%20a/?page=2");
/// assert_eq!(path.as_bytes(), b"/api/users a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<u8>);

impl Path {
    /// The path of a request's target, where an encoded slash is a slash.
    #[must_use]
    pub fn decoded(target: &[u8]) -> Path {
        Path::clean(&percent_decode(path_of(target)).collect::<Vec<_>>())
    }

    /// The path of a request's target, where an encoded slash is part of its segment and stands as
    /// `%2F`. It is none if no slash is encoded.
    ///
    /// Servers read such a path in one way or in the other, and a client must not win by that: the
    /// rules of both readings hold.
    #[must_use]
    pub fn with_encoded_slashes(target: &[u8]) -> Option<Path> {
        let path = path_of(target);
        // Only an escape that is one counts: `%%2F` has one, from its second percent sign on.
        let mut rest = path;
        let mut kept = Vec::new();
        let mut found = false;
        while let Some(at) = position_of_slash(rest) {
            let (before, after) = rest.split_at(at);
            kept.extend(percent_decode(before));
            kept.extend_from_slice(b"%2F");
            rest = after.get(3..).unwrap_or_default();
            found = true;
        }
        kept.extend(percent_decode(rest));
        found.then(|| Path::clean(&kept))
    }

    /// Removes dot segments, empty segments and the slash at the end from what is decoded already.
    fn clean(decoded: &[u8]) -> Path {
        let mut clean = Vec::with_capacity(decoded.len() + 1);
        for segment in decoded.split(|decoded| *decoded == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => {
                    let parent = clean.iter().rposition(|clean| *clean == b'/');
                    clean.truncate(parent.unwrap_or(0));
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

    /// The whole, from its first slash on.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The segments between the slashes, none of them empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.split(|x| *x == b'/').filter(|part| !part.is_empty())
    }
}

/// Where the first encoded slash is.
fn position_of_slash(path: &[u8]) -> Option<usize> {
    path.windows(3).position(|pair| pair.eq_ignore_ascii_case(b"%2f"))
}

/// What of a target is its path: not the query, and not a fragment, which nginx cuts off too. A
/// client may also write the whole address, `http://host/path`.
fn path_of(target: &[u8]) -> &[u8] {
    let end =
        target.iter().position(|target| matches!(target, b'?' | b'#')).unwrap_or(target.len());
    let path = target.get(..end).unwrap_or_default();
    let Some(at) = path.windows(3).position(|pair| pair == b"://") else { return path };
    let (scheme, rest) = path.split_at(at);
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if scheme.is_empty() || !scheme.iter().all(is_scheme) {
        return path;
    }
    let rest = rest.get(3..).unwrap_or_default();
    let host = rest.iter().position(|x| *x == b'/').unwrap_or(rest.len());
    rest.get(host..).unwrap_or_default()
}

/// What of a target is its query.
pub(super) fn query_of(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|target| *target == b'#').unwrap_or(target.len());
    let whole = target.get(..end).unwrap_or_default();
    let start = whole.iter().position(|whole| *whole == b'?');
    start.and_then(|start| whole.get(start + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
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
            // Once, and no more.
            ("/%256Cogin", "/%6Cogin"),
            ("/a%252Fb", "/a%2Fb"),
            // What is no escape is what it is.
            ("/%", "/%"),
            ("/%zz%2", "/%zz%2"),
            ("/100%/%6C", "/100%/l"),
            // The query, and what nginx takes for a fragment.
            ("/login?next=/a/../b", "/login"),
            ("/login?", "/login"),
            ("/login#?x", "/login"),
            ("/login%3Fx", "/login?x"),
            ("/login%23x", "/login#x"),
            ("?x", "/"),
            // The whole address.
            ("http://host/login", "/login"),
            ("HTTP://host:1/a/../login?q", "/login"),
            ("http://host", "/"),
            ("http://host?/login", "/"),
            ("/http://host/login", "/http:/host/login"),
            // Three dots are a name; so is anything else.
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
    fn an_encoded_slash_may_be_part_of_a_segment() {
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
    fn the_query_is_what_follows_the_first_question_mark() {
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
        fn any_bytes_have_a_path_that_stays_as_it_is(target in paths()) {
            let both = [Some(Path::decoded(&target)), Path::with_encoded_slashes(&target)];
            for path in both.into_iter().flatten() {
                let bytes = path.as_bytes();
                prop_assert!(bytes.len() <= target.len() + 1);
                prop_assert!(bytes.starts_with(b"/"));
                prop_assert_eq!(&Path::clean(bytes), &path);
                let dots = path.segments().any(|it| it == b"." || it == b"..");
                prop_assert!(!dots, "{:?}", path);
                let joined: Vec<u8> = path.segments().flat_map(|it| [b"/", it].concat()).collect();
                prop_assert!(bytes == b"/" || bytes == joined);
            }
        }

        #[test]
        fn spelled_with_escapes_it_is_the_same(target in paths()) {
            let path = Path::decoded(&target);
            let escaped = percent_encode(path.as_bytes(), NON_ALPHANUMERIC).to_string();
            prop_assert_eq!(Path::decoded(escaped.as_bytes()), path);
        }

        #[test]
        fn a_target_with_a_slash_first_never_grows(target in paths()) {
            let target = [b"/", &*target].concat();
            prop_assert!(Path::decoded(&target).as_bytes().len() <= target.len());
        }
    }
}
