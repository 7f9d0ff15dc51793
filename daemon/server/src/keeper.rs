//! Snapshots: the state is read from a directory at the start and saved to it at an interval.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::{MemoryLimiter, RestoreReport, SaveReport, SnapshotDir, SnapshotError};

use crate::config::StoreConfig;

/// A limiter with its snapshot directory.
#[derive(Clone, Debug)]
pub struct Keeper(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    directory: SnapshotDir,
    limiter: MemoryLimiter,
    interval: Duration,
}

impl Keeper {
    /// Opens a directory and restores a limiter from it.
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

    /// Saves a snapshot; blocks until it is on disk.
    ///
    /// # Errors
    /// The snapshot cannot be written; the previous snapshot stays in place.
    pub fn save(&self) -> Result<SaveReport, SnapshotError> {
        self.0.limiter.save(&self.0.directory)
    }

    /// Saves a snapshot at each interval; never returns. Failures are logged, and the next interval
    /// tries again.
    pub async fn keep(&self) {
        let mut ticks = interval(self.0.interval);
        // Intervals missed during a long save are skipped.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let keeper = self.clone();
            match spawn_blocking(move || keeper.save()).await {
                Ok(Ok(report)) => tracing::debug!(keys = report.keys, "snapshot saved"),
                Ok(Err(error)) => tracing::error!("cannot save the snapshot: {error}"),
                Err(error) => tracing::error!("the snapshot task failed: {error}"),
            }
        }
    }
}
