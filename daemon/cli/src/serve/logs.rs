//! The log on standard error, as text or JSON.

use anyhow::{Context, Result};
use tollgate_daemon::{Log, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, reload};

/// An additional subscriber to log events.
pub(super) type EventLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Handle to the running log.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    level: reload::Handle<Targets, Registry>,
}

impl Logs {
    /// Starts the log, once per process. The level does not apply to the other layer.
    pub(super) fn start(log: &Log, other: Option<EventLayer>) -> Result<Self> {
        let (filter, level) = reload::Layer::new(filter(log.level));
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines: EventLayer = match log.format {
            LogFormat::Text => lines.with_target(false).boxed(),
            // Message and fields are at the top level, beside time, level and target.
            LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
        };
        let mut layers = vec![lines.with_filter(filter).boxed()];
        layers.extend(other);
        let started = tracing_subscriber::registry().with(layers).try_init();
        started.context("cannot start the log")?;
        Ok(Logs { level })
    }

    /// Changes the level. The format cannot change.
    pub(super) fn set_level(&self, level: LogLevel) {
        // Fails only after the log is dropped, which ends with the process.
        let _ = self.level.reload(filter(level));
    }
}

/// Logs why the process ends as JSON, also if it ends before its log has started.
pub(crate) fn log_fatal(error: &anyhow::Error) {
    let mut log = tollgate_daemon::Config::default().log;
    log.format = LogFormat::Json;
    // Fails if the log has started; then its format is the same.
    let _ = Logs::start(&log, None);
    tracing::error!("cannot start or continue: {error:#}");
}

/// The events to log. Audit lines are logged at any level, so that a quiet log does not lose them.
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
    fn level_of_a_running_log_changes() {
        let mut log = tollgate_daemon::Config::default().log;
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
