//! Addresses of servers.

use std::fmt;
use std::path::PathBuf;

use tollgate_state::OpenError;

use crate::error::{invalid_part, invalid_secret};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Address {
    Tcp { host: Box<str>, port: u16 },
    Unix(PathBuf),
}

impl Address {
    pub(crate) fn tcp(host: &str, port: u16) -> Self {
        Address::Tcp { host: host.into(), port }
    }

    /// Parses the `host:port` of a redirection. The host may be an IPv6 address without brackets, or
    /// empty for the host of the server that sent it.
    pub(crate) fn from_redirection(text: &str, speaker: &Address) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self::relative_to(speaker, host, port.parse().ok()?))
    }

    /// Creates an address reported by a server. An empty or unknown host is that of the server.
    pub(crate) fn relative_to(speaker: &Address, host: &str, port: u16) -> Self {
        match speaker {
            Address::Tcp { host: own, .. } if host.is_empty() || host == "?" => {
                Address::tcp(own, port)
            }
            _ => Address::tcp(host, port),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Parses `host[:port]`.
pub(super) fn parse(text: &str, default_port: u16) -> Result<Address, OpenError> {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None => return Err(invalid_secret("port", "write : between ] and the port")),
        },
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(invalid_part("host", host, "write a name or an address after ://"));
    }
    let port = match port {
        None => default_port,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            let remedy = "write a number from 1 to 65535; an IPv6 address goes in []";
            // Anything but a number may be a password, if the host is missing.
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            if is_number {
                invalid_part("port", port, remedy)
            } else {
                invalid_secret("port", remedy)
            }
        })?,
    };
    Ok(Address::tcp(host, port))
}

/// Parses a list separated by commas.
pub(super) fn parse_all(text: &str, default_port: u16) -> Result<Vec<Address>, OpenError> {
    text.split(',').map(|part| parse(part, default_port)).collect()
}
