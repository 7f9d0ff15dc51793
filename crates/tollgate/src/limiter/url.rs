//! Store URLs: which kinds of store there are, and URLs without passwords.

use std::fmt;

/// Why a store could not be opened. Contains no password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no known kind of store.
    Unknown(Box<str>),
    /// The URL names a store on Redis, and the feature `redis` is disabled.
    Feature(Box<str>),
    /// The URL or an option of a store on Redis is invalid.
    #[cfg(feature = "redis")]
    Redis(tollgate_redis::OpenError),
}

/// The first part of the scheme of every store on Redis.
const REDIS_SCHEMES: [&str; 5] = ["redis", "rediss", "valkey", "valkeys", "unix"];

/// Returns whether a URL names a store on Redis, valid or not.
fn is_redis(url: &str) -> bool {
    let scheme = url.find([':', '+']).map_or(url, |end| &url[..end]);
    REDIS_SCHEMES.contains(&scheme)
}

pub(super) fn check_scheme(url: &str) -> Result<(), OpenError> {
    match url {
        "memory" => Ok(()),
        _ if !is_redis(url) => Err(OpenError::Unknown(masked_url(url).into())),
        _ if cfg!(feature = "redis") => Ok(()),
        _ => Err(OpenError::Feature(masked_url(url).into())),
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unknown(url) => write!(
                f,
                "unknown store {url:?}; expected memory, redis://HOST, redis+cluster://HOST,HOST, \
                 redis+sentinel://HOST,HOST/MASTER or redis+unix:///PATH (rediss for TLS; valkey \
                 works like redis)"
            ),
            OpenError::Feature(url) => write!(
                f,
                "the store {url:?} needs the feature redis: \
                 cargo add tollgate --features redis"
            ),
            #[cfg(feature = "redis")]
            OpenError::Redis(redis) => redis.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// Returns a store's URL with `***` in place of the password, for display.
///
/// # Examples
/// ```
/// use tollgate::masked_url;
/// assert_eq!(masked_url("redis://ann:secret@db:6379/1"), "redis://ann:***@db:6379/1");
/// assert_eq!(masked_url("memory"), "memory");
/// ```
#[must_use]
pub fn masked_url(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut masked = scheme;
    // A password that is not percent-encoded may contain any delimiter.
    if let Some((login, host)) = rest.rsplit_once('@') {
        match login.split_once(':') {
            Some((user, _)) => masked.push_str(&format!("{user}:***@{host}")),
            None => masked.push_str(&format!("{login}@{host}")),
        }
    } else if let Some((_, host)) = query.rsplit_once('@') {
        return format!("{masked}***@{host}");
    } else {
        masked.push_str(rest);
    }
    for (index, parameter) in query.split('&').filter(|part| !part.is_empty()).enumerate() {
        masked.push(if index == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, _)) if name.starts_with("pass") => masked.push_str(&format!("{name}=***")),
            _ => masked.push_str(parameter),
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_of_redis_are_recognised() {
        for (url, expected) in [
            ("redis://h", true),
            ("rediss://h:1", true),
            ("redis+cluster://a,b", true),
            ("valkeys+sentinel://a/m", true),
            ("unix:///run/redis.sock", true),
            ("redis:h", true),
            ("redsi://h", false),
            ("http://h", false),
            ("memory", false),
            ("", false),
        ] {
            assert_eq!(is_redis(url), expected, "{url}");
        }
    }

    #[test]
    fn a_redis_url_needs_the_feature() {
        let message = check_scheme("redis://u:secret@h").map_err(|error| error.to_string());
        let refused = "the store \"redis://u:***@h\" needs the feature redis: \
                       cargo add tollgate --features redis";
        let expected = if cfg!(feature = "redis") { Ok(()) } else { Err(refused.to_owned()) };
        assert_eq!(message, expected);
        assert_eq!(check_scheme("memory"), Ok(()));
    }

    #[test]
    fn passwords_are_masked() {
        for (url, expected) in [
            ("redis://h:1/2", "redis://h:1/2"),
            ("redis://:secret@h", "redis://:***@h"),
            ("redis://u@h", "redis://u@h"),
            ("rediss://u:se@cr/et@h:1", "rediss://u:***@h:1"),
            ("redis://u:se?cret@h:1", "redis://***@h:1"),
            ("redis+cluster://u:secret@a:1,b:2", "redis+cluster://u:***@a:1,b:2"),
            ("unix:///r.sock?db=1&user=u&pass=secret", "unix:///r.sock?db=1&user=u&pass=***"),
            ("redis:u:secret@h", "redis:***@h"),
            ("memory", "memory"),
        ] {
            assert_eq!(masked_url(url), expected);
        }
    }
}
