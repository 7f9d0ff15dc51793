//! Where a server listens.

use std::fmt;
use std::path::PathBuf;

use crate::open_error::OpenError;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp { host: Box<str>, port: u16 },
    Unix(PathBuf),
}

impl Address {
    pub(crate) fn tcp(host: &str, port: u16) -> Self {
        Address::Tcp { host: host.into(), port }
    }

    /// What a cluster says in a redirection: `host:port`, where the host may be an address of
    /// version 6 without brackets, or empty for the one who speaks.
    pub(crate) fn of_redirection(text: &str, speaker: &Address) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self::at(host, port.parse().ok()?, speaker))
    }

    /// An address of which the host may be left out or unknown, for the one who speaks.
    pub(crate) fn at(host: &str, port: u16, speaker: &Address) -> Self {
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

/// Reads `host[:port]`.
pub(super) fn parse(text: &str, default_port: u16) -> Result<Address, OpenError> {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(OpenError::url("host", host, "write its name or address after ://"));
    }
    let port = match port {
        None => default_port,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            let remedy = "write a number from 1 to 65535; an IPv6 address goes in []";
            // What is no number may be the password of a URL whose host was forgotten.
            let shows = port.bytes().all(|byte| byte.is_ascii_digit());
            if shows {
                OpenError::url("port", port, remedy)
            } else {
                OpenError::secret("port", remedy)
            }
        })?,
    };
    Ok(Address::tcp(host, port))
}

/// Reads several, with commas between.
pub(super) fn parse_all(text: &str, default_port: u16) -> Result<Vec<Address>, OpenError> {
    text.split(',').map(|part| parse(part, default_port)).collect()
}
