//! `headers`, `privacy`, `log`, `drain`.

use std::time::Duration;

use crate::fields::{Broken, Fields, Meaning};
use crate::schema::Value;

/// How headers tell a client its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit`, as the draft's eleventh version has them.
    Draft11,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, in seconds from now.
    LegacyDelta,
    /// The same with the reset as a time, in seconds since 1970.
    LegacyEpoch,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`.
    Draft6,
}

/// How keys show in logs and in the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// As they are.
    Plain,
    /// By their beginning.
    Masked,
    /// By a hash.
    Hashed,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// The least that is.
    pub level: LogLevel,
    /// How.
    pub format: LogFormat,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something does not work.
    Error,
    /// Something may not work as meant.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What helps to find a fault.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// As an object.
    Json,
}

/// How it stops.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drain {
    /// How long it says so and still accepts.
    pub delay: Duration,
    /// How long requests under way have after that.
    pub timeout: Duration,
}

macro_rules! words {
    ($($type:ty { $($word:literal => $value:expr,)* })*) => {
        $(impl Meaning for $type {
            fn of(value: Value) -> Option<Self> {
                match value {
                    $(Value::Word($word) => Some($value),)*
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

pub(super) fn log(fields: &Fields<'_>) -> Result<Log, Broken> {
    Ok(Log { level: fields.get("level")?, format: fields.get("format")? })
}

pub(super) fn drain(fields: &Fields<'_>) -> Result<Drain, Broken> {
    Ok(Drain { delay: fields.get("delay")?, timeout: fields.get("timeout")? })
}

pub(super) fn headers(fields: &Fields<'_>) -> Result<Vec<HeaderStyle>, Broken> {
    let written = fields.list("headers")?;
    if written.is_empty() {
        return Err(fields.report("headers", "write a style, such as [draft11], or [none]"));
    }
    if written.len() > 1
        && let Some(none) = written.iter().find(|x| x.text == "none")
    {
        let message = "none stands alone; leave it or the others out";
        return Err(fields.complain_at("headers", message, &none.origin));
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
            return Err(fields.complain_at("headers", message, &value.origin));
        }
        styles.push(style);
    }
    let is_legacy = |header_style: &HeaderStyle| {
        matches!(header_style, HeaderStyle::LegacyDelta | HeaderStyle::LegacyEpoch)
    };
    if styles.iter().filter(|style| is_legacy(style)).count() > 1 {
        let message = "legacy-delta and legacy-epoch write the same headers; leave one of them out";
        return Err(fields.report("headers", message));
    }
    Ok(styles)
}
