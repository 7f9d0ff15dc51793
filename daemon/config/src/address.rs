//! The address of a listener.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`.
    Tcp(String),
    /// The path of a Unix socket, written `unix:PATH`.
    Unix(PathBuf),
    /// No listener, written `off`.
    Off,
}

impl Address {
    /// Whether other machines may reach it. A name other than `localhost` may be any address.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let Address::Tcp(address) = self else { return false };
        let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(ip) => !ip.to_canonical().is_loopback(),
            Err(_) => !host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// # Errors
    /// The text has none of the three forms; the error states the remedy.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Address::Off);
        }
        if let Some(path) = text.strip_prefix("unix:").filter(|text| !text.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        let port = text.rsplit_once(':').filter(|(host, _)| is_host(host));
        if port.is_some_and(|(_, port)| u16::from_str(port).is_ok()) {
            return Ok(Address::Tcp(text.to_owned()));
        }
        Err("expected HOST:PORT, such as 127.0.0.1:8080, unix:PATH or off".to_owned())
    }
}

fn is_host(text: &str) -> bool {
    // An IPv6 address needs brackets, so that its last group is not mistaken for the port.
    !text.is_empty() && (!text.contains(':') || (text.starts_with('[') && text.ends_with(']')))
}

/// The notation of the configuration.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(tcp) => f.write_str(tcp),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Off => f.write_str("off"),
        }
    }
}
