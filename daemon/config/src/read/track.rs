//! `policies.*.track`.

use std::time::Duration;

use tollgate::Micros;

use crate::fields::{Invalid, SectionReader};

/// What is recorded about the keys of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Track {
    /// How many of the last notes of a key are kept; 0 for none.
    pub recent: usize,
    /// Whether decisions and costs are counted per key.
    pub usage: bool,
    /// The time series of each key.
    pub timeline: Option<TimelineSpec>,
    /// The maximum number of tracked keys.
    pub max_keys: usize,
    /// The maximum size of all records together, in bytes. Memory store only.
    pub max_bytes: usize,
    /// How long a key is remembered after its last decision; at least as long as the timeline.
    pub keep: Duration,
}

/// A time series: decisions and costs per interval, over a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSpec {
    /// The length of an interval: whole seconds.
    pub interval: Micros,
    /// The number of intervals.
    pub intervals: u16,
}

impl TimelineSpec {
    /// The most intervals of a timeline.
    pub const MAX_INTERVALS: u64 = 2_880;

    /// How far back the timeline reaches.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from(self.interval) * u32::from(self.intervals)
    }
}

/// How long a key is remembered by default, if the timeline is not longer.
const DEFAULT_KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the section; absent if the policy tracks nothing.
pub(super) fn read(fields: &SectionReader<'_>) -> Result<Option<Track>, Invalid> {
    let (recent, usage) = (fields.get::<usize>("recent")?, fields.get::<bool>("usage")?);
    let timeline: Option<TimelineSpec> = fields.get("timeline")?;
    let (max_keys, max_bytes) = (fields.get("max_keys")?, fields.get("max_bytes")?);
    let keep: Option<Duration> = fields.get("keep")?;
    if recent == 0 && !usage && timeline.is_none() {
        return Ok(None);
    }
    let needed = timeline.map_or(Duration::ZERO, |timeline| timeline.duration());
    if let Some(keep) = keep
        && keep < needed
    {
        let message = format!(
            "{}s is shorter than the timeline of {}s; set it to at least that, or leave it out",
            Micros::from(keep),
            Micros::from(needed)
        );
        return Err(fields.report("keep", message));
    }
    let keep = keep.unwrap_or_else(|| needed.max(DEFAULT_KEEP));
    Ok(Some(Track { recent, usage, timeline, max_keys, max_bytes, keep }))
}
