//! `listen`, `headers`, `privacy`, `log`, `drain` and `limits`.

use std::path::PathBuf;
use std::time::Duration;

use tollgate_headers::HeaderStyle;

use crate::fields::{FromValue, Invalid, SectionReader};
use crate::schema::Value;
use crate::{Bounds, Listen, TlsConfig, TokenConfig};

/// How keys appear in logs and in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// Unchanged.
    Plain,
    /// Only the first characters.
    Masked,
    /// Hashed.
    Hashed,
}

/// Logging.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// The lowest severity.
    pub level: LogLevel,
    /// The format of log lines.
    pub format: LogFormat,
}

/// A severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// A failure.
    Error,
    /// A possible problem.
    Warn,
    /// Information for operators.
    Info,
    /// Details for debugging.
    Debug,
    /// The most detailed events.
    Trace,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// A JSON object per line.
    Json,
}

/// Graceful shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drain {
    /// How long connections are still accepted while `/readyz` fails.
    pub delay: Duration,
    /// How long requests in flight may take after that.
    pub timeout: Duration,
}

pub(super) fn log(fields: &SectionReader<'_>) -> Result<Log, Invalid> {
    Ok(Log { level: fields.get("level")?, format: fields.get("format")? })
}

pub(super) fn drain(fields: &SectionReader<'_>) -> Result<Drain, Invalid> {
    Ok(Drain { delay: fields.get("delay")?, timeout: fields.get("timeout")? })
}

pub(super) fn bounds(fields: &SectionReader<'_>) -> Result<Bounds, Invalid> {
    Ok(Bounds {
        key_bytes: fields.get("key_bytes")?,
        body: fields.get("body")?,
        checks: fields.get("checks")?,
        connections: fields.get("connections")?,
        peer_connections: fields.get("peer_connections")?,
        header_timeout: fields.get("header_timeout")?,
        idle: fields.get("idle")?,
        pipeline: fields.get("pipeline")?,
        output: fields.get("output")?,
        write_timeout: fields.get("write_timeout")?,
        buffers: fields.get("buffers")?,
        connection_age: fields.get("connection_age")?,
    })
}

pub(super) fn listen(fields: &SectionReader<'_>) -> Result<Listen, Invalid> {
    let tls = tls(&fields.section("tls"));
    Ok(Listen {
        http: fields.get("http")?,
        grpc: fields.get("grpc")?,
        resp: fields.get("resp")?,
        metrics: fields.get("metrics")?,
        admin: fields.get("admin")?,
        hosts: fields.list("hosts")?,
        tls: tls?,
    })
}

/// Requires tokens for a dashboard that other machines reach.
pub(super) fn check_admin(
    fields: &SectionReader<'_>,
    listen: &Listen,
    tokens: &[TokenConfig],
) -> Result<(), Invalid> {
    if !listen.admin.is_exposed() || !tokens.is_empty() {
        return Ok(());
    }
    let message = format!(
        "other machines reach {}, where the dashboard requires a token; add one with the scope \
         read to tokens, or use a loopback address or a Unix socket",
        listen.admin
    );
    Err(fields.report("admin", message))
}

fn tls(fields: &SectionReader<'_>) -> Result<Option<TlsConfig>, Invalid> {
    let client_ca: Option<PathBuf> = fields.get("client_ca")?;
    match fields.certificate()? {
        Some((cert, key)) => Ok(Some(TlsConfig { client_ca, ..TlsConfig::new(cert, key) })),
        None if client_ca.is_some() => {
            let message = "client certificates require TLS; add listen.tls.cert and listen.tls.key";
            Err(fields.report("client_ca", message))
        }
        None => Ok(None),
    }
}

pub(super) fn headers(fields: &SectionReader<'_>) -> Result<Vec<HeaderStyle>, Invalid> {
    let words = fields.list_with_origins::<&'static str>("headers")?;
    if words.is_empty() {
        let message = "expected at least one style, such as [draft11], or [none]";
        return Err(fields.report("headers", message));
    }
    let mut styles = Vec::new();
    for (word, origin) in &words {
        // Every other word is a style.
        let Some(style) = HeaderStyle::from_value(&Value::Keyword(word)) else {
            if words.len() == 1 {
                continue;
            }
            let message = "none cannot be combined with other styles; remove it or the others";
            return Err(fields.report_at("headers", message, origin));
        };
        if styles.contains(&style) {
            let message = format!("{word} is listed twice; remove one of the two");
            return Err(fields.report_at("headers", message, origin));
        }
        styles.push(style);
    }
    if [HeaderStyle::LegacyDelta, HeaderStyle::LegacyEpoch].iter().all(|x| styles.contains(x)) {
        let message = "legacy-delta and legacy-epoch use the same headers; remove one of the two";
        return Err(fields.report("headers", message));
    }
    Ok(styles)
}
