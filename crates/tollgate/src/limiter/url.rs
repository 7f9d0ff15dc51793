//! Store URLs: which kinds of store there are, and URLs without passwords.

use tollgate_state::OpenError;

/// The first part of the scheme of every store on Redis.
const REDIS_SCHEMES: [&str; 5] = ["redis", "rediss", "valkey", "valkeys", "unix"];

/// Returns whether a URL names a store on Redis, valid or not.
pub(super) fn is_redis(url: &str) -> bool {
    REDIS_SCHEMES.contains(&server_of(url))
}

/// The first part of the scheme.
fn server_of(url: &str) -> &str {
    url.split([':', '+']).next().unwrap_or(url)
}

/// Checks a URL without opening the store.
pub(super) fn check(url: &str) -> Result<(), OpenError> {
    check_scheme(url)?;
    #[cfg(feature = "redis")]
    if is_redis(url) {
        tollgate_redis::RedisStore::check_url(url)?;
    }
    Ok(())
}

pub(super) fn check_scheme(url: &str) -> Result<(), OpenError> {
    match url {
        "memory" => Ok(()),
        _ if !is_redis(url) => Err(OpenError::Unknown(masked_url(url).into())),
        _ if cfg!(feature = "redis") => Ok(()),
        _ => Err(OpenError::Feature { scheme: server_of(url).into(), feature: "redis" }),
    }
}

/// Returns a store's URL with `***` in place of the password, for display. If the password cannot be
/// distinguished from the rest, all of the URL after the scheme is masked.
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
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    // The path of a Unix socket contains no login; its parameters do.
    let is_socket = address.starts_with('/');
    if query.contains('@') && !is_socket {
        // A password that is not percent-encoded may contain any delimiter, so this `?` may be part
        // of one.
        return format!("{scheme}***");
    }
    let login = address.rsplit_once('@').filter(|_| !is_socket);
    let mut masked = match login.and_then(|(login, host)| Some((login.split_once(':')?.0, host))) {
        Some((user, host)) => format!("{scheme}{user}:***@{host}"),
        None => format!("{scheme}{address}"),
    };
    for (index, parameter) in query.split('&').filter(|part| !part.is_empty()).enumerate() {
        masked.push(if index == 0 { '?' } else { '&' });
        masked.push_str(match parameter.split_once('=') {
            Some(("db" | "user", _)) => parameter,
            Some(("pass", _)) => "pass=***",
            // Possibly the end of a password that contains `&`.
            _ => "***",
        });
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
        let refused = "the scheme \"redis\" of the store's URL needs the feature redis: \
                       cargo add tollgate --features redis";
        let expected = if cfg!(feature = "redis") { Ok(()) } else { Err(refused.to_owned()) };
        assert_eq!(message, expected);
        assert_eq!(check_scheme("memory"), Ok(()));
    }

    #[cfg(feature = "redis")]
    #[tokio::test]
    async fn tls_needs_its_feature() {
        let opened = crate::Limiter::open("rediss://u:secret@127.0.0.1:1").await;
        let message = opened.map(drop).map_err(|error| error.to_string());
        let refused = "the scheme \"rediss\" of the store's URL needs the feature tls-rustls: \
                       cargo add tollgate --features tls-rustls";
        let expected = if cfg!(feature = "tls-rustls") { Ok(()) } else { Err(refused.to_owned()) };
        assert_eq!(message, expected);
    }

    #[test]
    fn passwords_are_masked() {
        for (url, expected) in [
            ("redis://h:1/2", "redis://h:1/2"),
            ("redis://:secret@h", "redis://:***@h"),
            ("redis://u@h", "redis://u@h"),
            ("rediss://u:se@cr/et@h:1", "rediss://u:***@h:1"),
            ("redis://u:se?cret@h:1", "redis://***"),
            ("redis://u:se@c?ret@h:1", "redis://***"),
            ("redis+cluster://u:secret@a:1,b:2", "redis+cluster://u:***@a:1,b:2"),
            ("unix:///r.sock?db=1&user=u&pass=secret", "unix:///r.sock?db=1&user=u&pass=***"),
            ("unix:///r.sock?user=u@x&pass=secret", "unix:///r.sock?user=u@x&pass=***"),
            ("unix:///r.sock?pass=se@c?r&et=1&db=1", "unix:///r.sock?pass=***&***&db=1"),
            ("unix:///a:b@c/r.sock?pass=secret", "unix:///a:b@c/r.sock?pass=***"),
            ("redis:u:secret@h", "redis:***@h"),
            ("memory", "memory"),
        ] {
            assert_eq!(masked_url(url), expected);
        }
    }
}
