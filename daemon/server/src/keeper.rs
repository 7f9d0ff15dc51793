//! Keeping state over a restart: a directory, read at the start and written now and then.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::{MemoryLimiter, RestoreReport, SaveReport, SnapshotDir, SnapshotError};

use crate::config::StoreConfig;

/// A limiter with the directory that its state is kept in.
#[derive(Clone, Debug)]
pub struct Keeper(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    directory: SnapshotDir,
    limiter: MemoryLimiter,
    interval: Duration,
}

impl Keeper {
    /// Opens a directory, and a limiter with what it holds.
    ///
    /// # Errors
    /// The directory cannot be used, or another process uses it.
    pub fn open(
        directory: &Path,
        store: &StoreConfig,
    ) -> Result<(Self, RestoreReport), SnapshotError> {
        let directory = SnapshotDir::open(directory)?;
        let (limiter, restored) = store.builder().restore(&directory)?;
        let parts = Parts { directory, limiter, interval: store.snapshot_interval };
        Ok((Keeper(Arc::new(parts)), restored))
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &MemoryLimiter {
        &self.0.limiter
    }

    /// Writes what the limiter holds; blocks until it is on the disk.
    ///
    /// # Errors
    /// It cannot be written; what was written before is still there.
    pub fn save(&self) -> Result<SaveReport, SnapshotError> {
        self.0.limiter.save(&self.0.directory)
    }

    /// Saves now and then, for ever. What cannot be written is reported and tried again.
    pub async fn keep(&self) {
        let mut ticks = interval(self.0.interval);
        // A save that took longer than the interval is not made up for.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let keeper = self.clone();
            match spawn_blocking(move || keeper.save()).await {
                Ok(Ok(report)) => tracing::debug!(keys = report.keys, "saved"),
                Ok(Err(error)) => tracing::error!("state is not saved: {error}"),
                Err(error) => tracing::error!("saving failed: {error}"),
            }
        }
    }
}
