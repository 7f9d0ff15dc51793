//! `headers`, `privacy`, `log`, `drain`.

use std::time::Duration;

use crate::fields::{FromValue, Invalid, SectionReader};
use crate::schema::Value;

/// A style of rate limit headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit`, as in draft-ietf-httpapi-ratelimit-headers-11.
    Draft11,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, in seconds from now.
    LegacyDelta,
    /// The same headers with the reset as a Unix time.
    LegacyEpoch,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`.
    Draft6,
}

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
    /// How.
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
    /// Everything.
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

macro_rules! words {
    ($($type:ty { $($word:literal => $value:expr,)* })*) => {
        $(impl FromValue for $type {
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    $(Value::Keyword($word) => Some($value),)*
                    _ => None,
                }
            }
        })*
    };
}

words! {
    Privacy {
        "plain" => Privacy::Plain,
        "masked" => Privacy::Masked,
        "hashed" => Privacy::Hashed,
    }
    LogLevel {
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
    }
    LogFormat {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
    }
}

pub(super) fn log(fields: &SectionReader<'_>) -> Result<Log, Invalid> {
    Ok(Log { level: fields.get("level")?, format: fields.get("format")? })
}

pub(super) fn drain(fields: &SectionReader<'_>) -> Result<Drain, Invalid> {
    Ok(Drain { delay: fields.get("delay")?, timeout: fields.get("timeout")? })
}

pub(super) fn headers(fields: &SectionReader<'_>) -> Result<Vec<HeaderStyle>, Invalid> {
    let written = fields.list("headers")?;
    if written.is_empty() {
        return Err(fields.report(
            "headers",
            "expected at least one style, such as [draft11], or \
                                             [none]",
        ));
    }
    if written.len() > 1
        && let Some(none) = written.iter().find(|x| x.text == "none")
    {
        let message = "none cannot be combined with other styles; remove it or the others";
        return Err(fields.report_at("headers", message, &none.origin));
    }
    let mut styles = Vec::new();
    for value in &written {
        let style = match &*value.text {
            "draft11" => HeaderStyle::Draft11,
            "legacy-delta" => HeaderStyle::LegacyDelta,
            "legacy-epoch" => HeaderStyle::LegacyEpoch,
            "draft6" => HeaderStyle::Draft6,
            _ => continue,
        };
        if styles.contains(&style) {
            let message = format!("{} is listed twice; remove one of the two", value.text);
            return Err(fields.report_at("headers", message, &value.origin));
        }
        styles.push(style);
    }
    let is_legacy = |header_style: &HeaderStyle| {
        matches!(header_style, HeaderStyle::LegacyDelta | HeaderStyle::LegacyEpoch)
    };
    if styles.iter().filter(|style| is_legacy(style)).count() > 1 {
        let message = "legacy-delta and legacy-epoch use the same headers; remove one of the two";
        return Err(fields.report("headers", message));
    }
    Ok(styles)
}
