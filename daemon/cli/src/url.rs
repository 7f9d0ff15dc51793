//! URLs of daemons.

use anyhow::{Result, anyhow, bail};
use hyper::Uri;

/// The `HOST:PORT` of a URL.
pub(crate) fn authority(url: &str) -> Result<String> {
    let usage = "write it as http://127.0.0.1:8080";
    let uri: Uri = url.parse().map_err(|error| anyhow!("--url {url:?}: {error}; {usage}"))?;
    match (uri.scheme_str(), uri.host(), uri.path()) {
        (Some("http"), Some(host), "/" | "") => {
            // The default port of HTTP.
            Ok(format!("{host}:{}", uri.port_u16().unwrap_or(80)))
        }
        _ => bail!("--url {url:?} is not the URL of a daemon; {usage}"),
    }
}
