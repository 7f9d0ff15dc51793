//! The rate limit service that is compared with Tollgate.

use std::time::Duration;

use http::Uri;

/// A rate limit service that answers in place of Tollgate, which decides beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompareOptions {
    /// The address, with the scheme `http`, or `https` for TLS.
    pub uri: Uri,
    /// How long a call may take.
    pub timeout: Duration,
}

impl CompareOptions {
    /// The default of `timeout`.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);

    /// A service at `grpc://HOST:PORT`, or with TLS at `grpcs://HOST:PORT`.
    ///
    /// # Errors
    /// The URL is invalid.
    pub fn new(url: &str) -> Result<Self, String> {
        let scheme_and_rest = url.split_once("://");
        let scheme = match scheme_and_rest.map(|(scheme, _)| scheme) {
            Some("grpc") => Some("http"),
            Some("grpcs") => Some("https"),
            _ => None,
        };
        let server = scheme_and_rest.map_or("", |(_, server)| server);
        let uri = scheme.and_then(|scheme| format!("{scheme}://{server}").parse::<Uri>().ok());
        let uri = uri.filter(|uri| {
            let port = uri.port_u16().filter(|port| *port > 0);
            let is_bare = uri.path() == "/" && uri.query().is_none() && !server.contains('@');
            is_bare && uri.host().is_some_and(|host| !host.is_empty()) && port.is_some()
        });
        match uri {
            Some(uri) => Ok(CompareOptions { uri, timeout: Self::DEFAULT_TIMEOUT }),
            None => Err(format!(
                "{:?} is not a service; expected grpc://HOST:PORT, or grpcs://HOST:PORT for TLS",
                tollgate::masked_url(url)
            )),
        }
    }

    /// Whether the connection uses TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_a_scheme_a_host_and_a_port() {
        for (url, expected) in [
            ("grpc://old:8081", Some("http://old:8081/")),
            ("grpcs://old:443", Some("https://old:443/")),
            ("grpc://[::1]:8081", Some("http://[::1]:8081/")),
            ("http://old:8081", None),
            ("old:8081", None),
            ("grpc://old", None),
            ("grpc://old:0", None),
            ("grpc://old:8081/path", None),
            ("grpc://old:8081?a=b", None),
            ("grpc://user:secret@old:8081", None),
            ("grpc://:8081", None),
            ("", None),
        ] {
            let uri = CompareOptions::new(url).ok().map(|options| options.uri.to_string());
            assert_eq!(uri.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn an_error_hides_a_password() {
        let error = CompareOptions::new("grpc://user:secret@old:8081").unwrap_err();
        assert!(error.contains("grpc://user:***@old:8081") && !error.contains("secret"), "{error}");
    }
}
