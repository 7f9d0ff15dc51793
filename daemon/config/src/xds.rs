//! The connection to a control plane.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

/// The default maximum size of a response in bytes, as in other gRPC clients.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A control plane that provides the configuration of Envoy's rate limit service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdsOptions {
    /// `HOST:PORT`.
    pub server: String,
    /// The node ID of the daemon.
    pub node_id: String,
    /// The metadata of the node.
    pub metadata: BTreeMap<String, String>,
    /// Request headers. Their values may be secret and are not shown.
    headers: Headers,
    /// TLS, if enabled.
    pub tls: Option<XdsTls>,
    /// The maximum size of a response in bytes.
    pub max_message: usize,
    /// The timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// The delay before the first retry.
    pub backoff_initial: Duration,
    /// The maximum delay before a retry.
    pub backoff_max: Duration,
    /// The interval between keepalive pings. Many servers close a connection with more than one
    /// ping in five minutes.
    pub ping_every: Duration,
    /// The timeout of a keepalive ping.
    pub ping_timeout: Duration,
}

/// TLS with a control plane. The files are read for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdsTls {
    /// The CA bundle; the system's by default.
    pub ca: Option<PathBuf>,
    /// The client certificate.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// The name that the server certificate must contain, if not the host of the address.
    pub san: Option<String>,
}

impl XdsOptions {
    /// A server at `HOST:PORT`, without TLS, with the node ID `default`.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn new(server: &str) -> Result<Self, String> {
        let options = XdsOptions {
            server: server.to_owned(),
            node_id: "default".to_owned(),
            metadata: BTreeMap::new(),
            headers: Headers::default(),
            tls: None,
            max_message: MAX_BYTES,
            connect_timeout: Duration::from_secs(5),
            backoff_initial: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            ping_every: Duration::from_secs(6 * 60),
            ping_timeout: Duration::from_secs(20),
        };
        let uri = options.uri().ok();
        let is_complete = uri.is_some_and(|uri| {
            let port = uri.port_u16().filter(|port| *port > 0);
            let is_bare = uri.path() == "/" && uri.query().is_none() && !server.contains('@');
            is_bare && uri.host().is_some_and(|host| !host.is_empty()) && port.is_some()
        });
        match is_complete {
            true => Ok(options),
            false => Err(format!(
                "{server:?} is not an address; expected HOST:PORT, such as 127.0.0.1:18000"
            )),
        }
    }

    /// Adds a request header. The value of a name that ends in `-bin` is sent as bytes.
    ///
    /// # Errors
    /// The header is invalid.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, String> {
        let is_valid = name.ends_with("-bin") || HeaderValue::from_str(value).is_ok();
        let parsed = name.parse::<HeaderName>().ok().filter(|_| is_valid);
        let name =
            parsed.ok_or_else(|| format!("{name:?} with this value is not a valid header"))?;
        self.headers.0.push((name, value.as_bytes().to_vec()));
        Ok(self)
    }

    /// The headers of the stream with their values. The value of a name that ends in `-bin` is sent
    /// as bytes.
    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &[u8])> {
        self.headers.0.iter().map(|(name, value)| (name, &**value))
    }

    /// The address as a URI.
    ///
    /// # Errors
    /// The server's address is not a valid authority.
    pub fn uri(&self) -> Result<Uri, String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let uri = format!("{scheme}://{}", self.server).parse();
        uri.map_err(|error| format!("{:?} is not an address: {error}", self.server))
    }
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Headers(Vec<(HeaderName, Vec<u8>)>);

/// Omits the values, which may be secret.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_a_host_with_a_port() {
        for (server, is_one) in [
            ("localhost:18000", true),
            ("[::1]:18000", true),
            ("192.0.2.1:1", true),
            ("localhost", false),
            ("localhost:0", false),
            ("localhost:18000/path", false),
            ("localhost:18000?query", false),
            ("user@localhost:18000", false),
            ("http://localhost:18000", false),
            ("a b:1", false),
            (":18000", false),
            ("", false),
        ] {
            assert_eq!(XdsOptions::new(server).is_ok(), is_one, "{server}");
        }
    }

    #[test]
    fn header_values_are_not_shown() {
        let options = XdsOptions::new("localhost:1").unwrap();
        let options = options.header("Authorization", "s3cret").unwrap();
        let options = options.header("trace-bin", "\u{e9}").unwrap();
        let shown = format!("{options:?}");
        assert!(shown.contains("authorization") && !shown.contains("s3cret"), "{shown}");
        let headers: Vec<_> =
            options.headers().map(|(name, value)| (name.as_str(), value)).collect();
        assert_eq!(
            headers,
            [("authorization", &b"s3cret"[..]), ("trace-bin", "\u{e9}".as_bytes())]
        );
        for (name, value) in [("a b", "c"), ("", "c"), ("a", "b\nc"), (" -bin", "c")] {
            assert!(options.clone().header(name, value).is_err(), "{name}");
        }
    }
}
