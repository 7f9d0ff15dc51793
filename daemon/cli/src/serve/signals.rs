//! Signals: the first SIGTERM or SIGINT drains, the second ends the process; SIGHUP reloads.

use std::io;
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tollgate_daemon::Stop;

use super::systemd;

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// The exit code of a process that a signal ends, less the signal's number.
const SIGNAL_EXIT_CODE: i32 = 128;

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Completes at the first signal; the second ends the process at once. SIGINT comes from a
    /// terminal, where a person waits, so it skips the delay before the drain.
    pub(super) async fn stop(self) -> Stop {
        let first = self.first("stopping after requests in flight").await;
        systemd::stopping();
        if first == SignalKind::interrupt() { Stop::WithoutDelay } else { Stop::AfterDelay }
    }

    /// Completes at the first signal, for an observer that then writes what it has counted.
    pub(crate) async fn stop_writing(self) {
        self.first("stopping after the last totals are written").await;
    }

    async fn first(mut self, message: &str) -> SignalKind {
        let first = self.next().await;
        tracing::info!("{message}; a second signal stops at once");
        tokio::spawn(async move {
            let second = self.next().await;
            process::exit(SIGNAL_EXIT_CODE + second.as_raw_value());
        });
        first
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}

/// A message for each SIGHUP. Signals that arrive before the message is received are merged.
pub(super) fn hangups() -> io::Result<mpsc::Receiver<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() && !sender.is_closed() {
            // If the channel is full, a reload is pending already.
            let _ = sender.try_send(());
        }
    });
    Ok(receiver)
}
