//! URLs that can be shown.

/// A store's URL with `***` in place of the password, to be printed.
///
/// # Example
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
    let mut shown = scheme;
    // A password that is not escaped may hold any of the marks.
    if let Some((login, host)) = rest.rsplit_once('@') {
        match login.split_once(':') {
            Some((user, _)) => shown.push_str(&format!("{user}:***@{host}")),
            None => shown.push_str(&format!("{login}@{host}")),
        }
    } else if let Some((_, host)) = query.rsplit_once('@') {
        return format!("{shown}***@{host}");
    } else {
        shown.push_str(rest);
    }
    for (index, parameter) in query.split('&').filter(|part| !part.is_empty()).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, _)) if name.starts_with("pass") => shown.push_str(&format!("{name}=***")),
            _ => shown.push_str(parameter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
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
