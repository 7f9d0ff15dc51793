//! Snapshots of the memory store: restored at the start, saved at an interval.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::{MemoryLimiter, RestoreReport, SaveReport, SnapshotDir, SnapshotError};

use tollgate_config::StoreConfig;

/// Saves the state of a memory limiter to a directory.
#[derive(Clone, Debug)]
pub struct SnapshotTask(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    directory: SnapshotDir,
    limiter: MemoryLimiter,
    interval: Duration,
}

impl SnapshotTask {
    /// Opens a directory, and restores a limiter from it.
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
        Ok((SnapshotTask(Arc::new(parts)), restored))
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &MemoryLimiter {
        &self.0.limiter
    }

    /// Saves the state of the limiter; blocks until it is on disk.
    ///
    /// # Errors
    /// It cannot be written; the previous snapshot is unchanged.
    pub fn save(&self) -> Result<SaveReport, SnapshotError> {
        self.0.limiter.save(&self.0.directory)
    }

    /// Saves at an interval, until the task is dropped. Errors are logged, and saving is retried.
    pub async fn run(&self) {
        let mut ticks = interval(self.0.interval);
        // A save that takes longer than the interval delays the next one.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let task = self.clone();
            match spawn_blocking(move || task.save()).await {
                Ok(Ok(report)) => tracing::debug!(keys = report.keys, "snapshot saved"),
                Ok(Err(error)) => tracing::error!("cannot save the snapshot: {error}"),
                Err(error) => tracing::error!("the snapshot task failed: {error}"),
            }
        }
    }
}
