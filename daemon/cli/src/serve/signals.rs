//! The stop signals: the first asks, the second does not.

use std::io;
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tollgate_server::Stop;

use super::systemd;

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// What a process exits with that a signal ended.
const BY_SIGNAL: i32 = 128;

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Is ready at the first signal; the second ends the process at once. Whoever sends SIGINT
    /// sits at a terminal and waits, so it stops without the delay of a drain.
    pub(super) async fn stop(mut self) -> Stop {
        let first = self.next().await;
        systemd::stopping();
        tracing::info!("stopping: requests under way are finished; a second signal stops at once");
        tokio::spawn(async move {
            let second = self.next().await;
            process::exit(BY_SIGNAL + second.as_raw_value());
        });
        if first == SignalKind::interrupt() { Stop::WithoutDelay } else { Stop::AfterDelay }
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}

/// Something for each SIGHUP, which otherwise would end the process. Those that come while one is
/// being heeded are one.
pub(super) fn hangups() -> io::Result<mpsc::Receiver<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() && !tell.is_closed() {
            // A full line says the same.
            let _ = tell.try_send(());
        }
    });
    Ok(told)
}
