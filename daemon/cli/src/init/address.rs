//! Addresses in gateway configurations.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use anyhow::{Result, anyhow, bail, ensure};

/// A host and a port, without characters that have a meaning in a gateway's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// An IPv6 address is without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some((scheme, rest)) = text.split_once("://") {
            let rest = rest.trim_end_matches('/');
            bail!("unexpected {scheme}://; write HOST:PORT, such as {rest}");
        }
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| anyhow!("missing port; write HOST:PORT, such as 127.0.0.1:8080"))?;
        let port = port.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| anyhow!("invalid port; write a number from 1 to 65535"))?;
        Ok(Self { host: self::host(host)?, port })
    }
}

fn host(text: &str) -> Result<String> {
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address = address.parse::<Ipv6Addr>();
        let address =
            address.map_err(|_| anyhow!("{text} is not an IPv6 address such as [::1]"))?;
        return Ok(address.to_string());
    }
    ensure!(!text.contains(':'), "an IPv6 address must be in brackets, such as [::1]:8080");
    let is_name = !text.is_empty()
        && text.len() <= MAX_NAME_LEN
        && text.split('.').all(is_label)
        // Some gateways read names that end in a number as IPv4 addresses.
        && (text.parse::<IpAddr>().is_ok() || !ends_in_a_number(text));
    ensure!(is_name, "{text:?} is neither an address nor a name of letters, digits, '-' and '.'");
    Ok(text.to_owned())
}

/// <https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4>
const MAX_NAME_LEN: usize = 253;

fn is_label(label: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty() && !label.starts_with('-') && label.bytes().all(is_letter)
}

fn ends_in_a_number(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_addresses_are_parsed() {
        for text in ["127.0.0.1:8080", "[::1]:80", "app:3000", "my_app.example.com:1", "h-1:65535"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_addresses_are_errors_with_a_remedy() {
        let check = |text: &str, remedy: &str| {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(remedy), "{text}: {error}");
        };
        check("http://app:3000/", "such as app:3000");
        check("app", "such as 127.0.0.1:8080");
        check("app:", "from 1 to 65535");
        check("app:0", "from 1 to 65535");
        check("app:65536", "from 1 to 65535");
        check("::1:80", "in brackets");
        check("[::g]:80", "is not an IPv6 address");
        check(":80", "neither an address nor a name");
        check("a b:80", "neither an address nor a name");
        check("app;evil{}:80", "neither an address nor a name");
        check("-app:80", "neither an address nor a name");
        check("1.2.3.400:80", "neither an address nor a name");
        check(&format!("{}:80", "a".repeat(254)), "neither an address nor a name");
    }
}
