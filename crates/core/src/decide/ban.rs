//! Bans: denials are counted, and a banned key is denied.

use super::context::CheckContext;
use crate::algorithm::Anomalies;
use crate::decision::{Decision, Reason};
use crate::key::Block;
use crate::policy::BanState;
use crate::time::Timestamp;

impl CheckContext<'_> {
    /// The counted denials or the ban of the key; clear if the policy bans no keys.
    pub(super) fn ban(&self, now: Timestamp, anomalies: &mut Anomalies) -> BanState {
        match self.policy.enforced_ban() {
            None => BanState::Clear,
            Some(ban) => ban.advance_to(self.state.ban(), now, anomalies),
        }
    }

    /// Whether the key is blocked or banned, so that every check of it is denied.
    pub(super) fn is_locked_out(&self, ban: BanState, now: Timestamp) -> bool {
        self.is_blocked(now) || ban.is_banned()
    }

    /// Counts a denial that is due to the limits of the policy. Returns whether the policy counts any.
    pub(super) fn count_denial(&mut self, now: Timestamp) -> bool {
        let Some(ban) = self.policy.enforced_ban() else { return false };
        let counted = ban.count(self.ban(now, &mut Anomalies::default()), now);
        self.state.set_ban(self.policy, counted);
        true
    }

    /// Lets a ban override what the limits decided. `before` is the state before the denial was counted:
    /// the denial that begins a ban is that of the limits, and only its retry is later.
    pub(super) fn apply_ban(
        &self,
        decision: &mut Decision,
        before: BanState,
        after: BanState,
        now: Timestamp,
    ) {
        self.extend_reset_to_ban(decision, now);
        if let BanState::Banned { end } = before {
            decision.deny_blocked(Block::Until(end), now);
            decision.reason = Reason::Banned;
        } else if let BanState::Banned { end } = after {
            decision.extend_retry(end, now);
        }
    }

    /// Extends the reset to the end of the ban, or of the window in which denials are counted.
    pub(super) fn extend_reset_to_ban(&self, decision: &mut Decision, now: Timestamp) {
        if let Some(end) = self.ban(now, &mut Anomalies::default()).end() {
            decision.extend_reset(Block::Until(end), now);
        }
    }
}
