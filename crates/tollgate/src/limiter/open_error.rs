//! Why a store could not be opened.

use std::fmt;

use super::url::masked_url;

/// Why a store could not be opened. No password is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no store of that kind.
    Unknown(Box<str>),
    /// It is one on Redis, and the feature `redis` is not on.
    Feature(Box<str>),
    /// The URL or an option of a store on Redis is not what it should be.
    #[cfg(feature = "redis")]
    Redis(tollgate_redis::OpenError),
}

/// What the schemes of stores on Redis begin with.
const SERVERS: [&str; 5] = ["redis", "rediss", "valkey", "valkeys", "unix"];

/// Whether a URL is of a store on Redis, well written or not.
fn is_redis(url: &str) -> bool {
    let server = url.split([':', '+']).next().unwrap_or_default();
    SERVERS.contains(&server)
}

pub(super) fn check_kind(url: &str) -> Result<(), OpenError> {
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
                "there is no store {url:?}; there are memory, redis://HOST, \
                 redis+cluster://HOST,HOST, redis+sentinel://HOST,HOST/MASTER and \
                 redis+unix:///PATH, with rediss for TLS, and valkey wherever redis stands"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_told_apart() {
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
    fn a_store_on_redis_needs_the_feature() {
        let said = check_kind("redis://u:secret@h").map_err(|error| error.to_string());
        let refused = "the store \"redis://u:***@h\" needs the feature redis: \
                       cargo add tollgate --features redis";
        let expected = if cfg!(feature = "redis") { Ok(()) } else { Err(refused.to_owned()) };
        assert_eq!(said, expected);
        assert_eq!(check_kind("memory"), Ok(()));
    }
}
