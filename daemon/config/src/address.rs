//! Where a listener is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// At `HOST:PORT`.
    Tcp(String),
    /// At a path of the file system, written `unix:PATH`.
    Unix(PathBuf),
    /// Nowhere, written `off`.
    Off,
}

impl FromStr for Address {
    type Err = String;

    /// # Errors
    /// The text is none of the three; the error says what to write.
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
        Err("write HOST:PORT, such as 127.0.0.1:8080, unix:PATH or off".to_owned())
    }
}

fn is_host(text: &str) -> bool {
    // An IPv6 address stands in brackets, so that its last group is not taken for the port.
    !text.is_empty() && (!text.contains(':') || (text.starts_with('[') && text.ends_with(']')))
}

/// As it is written.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(tcp) => f.write_str(tcp),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Off => f.write_str("off"),
        }
    }
}
