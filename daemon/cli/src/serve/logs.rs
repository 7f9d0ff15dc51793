//! The log: lines on standard error, for people or for programs.

use anyhow::{Context, Result};
use tollgate_server::{Log, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, reload};

/// Somebody else who hears what the program tells.
pub(super) type Listener = Box<dyn Layer<Registry> + Send + Sync>;

/// The log, while it is written.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    level: reload::Handle<Targets, Registry>,
}

impl Logs {
    /// Begins it, once in a process. The level is the log's alone, not the other listener's.
    pub(super) fn start(log: &Log, other: Option<Listener>) -> Result<Self> {
        let (filter, level) = reload::Layer::new(filter(log.level));
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines: Listener = match log.format {
            LogFormat::Text => lines.with_target(false).boxed(),
            // The message and the fields stand beside time, level and target.
            LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
        };
        let mut listeners = vec![lines.with_filter(filter).boxed()];
        listeners.extend(other);
        let begun = tracing_subscriber::registry().with(listeners).try_init();
        begun.context("the log cannot be begun")?;
        Ok(Logs { level })
    }

    /// Logs from this level on, from now on. The format stays as it was begun.
    pub(super) fn set_level(&self, level: LogLevel) {
        // The log ends with the process, so there is always one to change.
        let _ = self.level.reload(filter(level));
    }
}

/// What is written. The audit is, whatever the level: nobody does without a line of it by asking
/// for a quiet log.
fn filter(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new().with_default(level).with_target("audit", level.max(LevelFilter::INFO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_can_be_changed_while_it_is_written() {
        let mut log = tollgate_server::Config::default().log;
        log.format = LogFormat::Json;
        let logs = Logs::start(&log, None).unwrap();
        for (level, shows_info) in
            [(LogLevel::Error, false), (LogLevel::Info, true), (LogLevel::Warn, false)]
        {
            logs.set_level(level);
            assert_eq!(tracing::enabled!(tracing::Level::INFO), shows_info, "{level:?}");
            assert!(tracing::enabled!(target: "audit", tracing::Level::INFO), "{level:?}");
        }
    }
}
