//! Bans: the denials that are counted of each key, and the end of its ban.

use tollgate_algorithms::{Ban, Check};

use super::describe::micros;
use super::expected::Expected;
use super::number::Int;
use super::{Model, place};

/// The latest time.
const LAST: Int = 8_500_000_000_000_000;
/// How much a clock may step back before a window or a ban counts longer than twice its length.
const SKEW: Int = 10_000_000;

/// The denials of a key in a window, or its ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The end of the window or of the ban.
    pub(super) end: Int,
    /// The denials in the window.
    denials: Int,
    pub(super) is_banned: bool,
    /// Whether the end has passed at some earlier time.
    pub(super) lapsed: bool,
}

impl Record {
    pub(super) fn is_open(&self, now: Int) -> bool {
        now < self.end
    }

    /// Whether the end is not further ahead than one step of the clock explains.
    fn is_plausible(&self, ban: &Ban, now: Int) -> bool {
        let length = if self.is_banned { ban.span() } else { ban.within() };
        self.end - now <= 2 * Int::from(length.get()) + SKEW
    }
}

/// The ban that a check can lead to. A shadow policy denies nothing.
fn ban_of(check: &Check<'_>) -> Option<Ban> {
    if check.policy.is_shadow() { None } else { check.policy.ban() }
}

impl Model {
    /// The denials or the ban that apply to a check now.
    pub(super) fn record(&self, check: &Check<'_>, now: Int) -> Option<Record> {
        let (ban, record) = (ban_of(check)?, self.bans.get(&place(check)).copied()?);
        (record.is_open(now) && record.is_plausible(&ban, now)).then_some(record)
    }

    /// The end of the ban that applies to a check now.
    pub(super) fn banned(&self, check: &Check<'_>, now: Int) -> Option<Int> {
        self.record(check, now).filter(|record| record.is_banned).map(|record| record.end)
    }

    /// The record after one more denial, which the policy's own limits decided.
    pub(super) fn after_denial(&self, check: &Check<'_>, now: Int) -> Option<Record> {
        let ban = ban_of(check)?;
        let open = self.record(check, now);
        let window_end = (now + Int::from(ban.within().get())).min(LAST);
        let (end, earlier) = open.map_or((window_end, 0), |open| (open.end, open.denials));
        let denials = earlier + 1;
        let is_banned = denials >= Int::from(ban.denials());
        let ban_end = (now + Int::from(ban.span().get())).min(LAST);
        let end = if is_banned { ban_end } else { end };
        Some(Record { end, denials: if is_banned { 0 } else { denials }, is_banned, lapsed: false })
    }

    pub(super) fn keep_record(&mut self, check: &Check<'_>, record: Option<Record>) {
        if let Some(record) = record {
            self.bans.insert(place(check), record);
        }
    }

    /// Lifts a ban that has not ended; counted denials stay.
    pub(super) fn lift_ban(&mut self, check: &Check<'_>, now: Int) -> bool {
        let is_banned = |record: &Record| record.is_banned && record.is_open(now);
        let lifted = self.bans.get(&place(check)).is_some_and(is_banned);
        if lifted {
            self.bans.remove(&place(check));
        }
        lifted
    }
}

/// Extends the reset to the end of the window or of the ban.
pub(super) fn extend_reset(expected: &mut Expected, record: Option<Record>, now: Int) {
    let end = record.filter(|record| record.is_open(now)).map(|record| micros(record.end - now));
    expected.reset_after = end.max(expected.reset_after);
}

/// Extends the retry to the end of a ban.
pub(super) fn extend_retry(expected: &mut Expected, record: Option<Record>, now: Int) {
    if let Some(record) = record.filter(|record| record.is_banned && record.is_open(now)) {
        expected.retry_after = expected.retry_after.max(Some(micros(record.end - now)));
    }
}
