//! Settlements of charges in several partitions.
//!
//! Nothing is settled unless every partition knows its part of the charge. The first partition decides which
//! of several settlements counts; the others follow. A settlement whose process dies in between is completed
//! by its repeat.

use futures_util::future::try_join_all;
use tollgate_algorithms::Decision;
use tollgate_state::StoreError;

use super::parts::{Part, Parts};
use super::{CrossSlotRequest, Phase, into_decisions, not_charged, receive_all};
use crate::error;
use crate::request::{self, Response, StoreRequest};
use crate::request_id::{RecordScope, RequestId, Role};

impl CrossSlotRequest<'_> {
    /// Settles all parts; returns their decisions in order.
    pub(super) async fn settle(&self, parts: &Parts) -> Result<Vec<Vec<Decision>>, StoreError> {
        let [home, enforced @ ..] = &parts.enforced[..] else { return Ok(Vec::new()) };
        let charge = self.look_up_charge(home, RecordScope::Request, 0).await?;
        let enforced = enforced.iter().map(|part| (part, RecordScope::Part));
        let shadows = parts.shadows.iter().map(|part| (part, RecordScope::Shadows));
        let others: Vec<_> = enforced.chain(shadows).collect();
        let look_ups = others.iter().map(|(part, scope)| self.look_up_charge(part, *scope, charge));
        try_join_all(look_ups).await?;
        let settle = |part: &Part, scope, phase| {
            self.send(self.settlement(part, Role::Whole, scope, charge), part.partition, phase)
        };
        let home = into_decisions(settle(home, RecordScope::Request, Phase::Later).await)?;
        let is_repeat = home.iter().any(|decision| decision.replayed);
        let mut settled = vec![home];
        let sent = others.iter().map(|(part, scope)| settle(part, *scope, Phase::Later)).collect();
        for decisions in receive_all(sent).await {
            let mut decisions = decisions?;
            decisions.iter_mut().for_each(|decision| decision.replayed = is_repeat);
            settled.push(decisions);
        }
        Ok(settled)
    }

    /// Returns the fingerprint of the check that charged a part.
    async fn look_up_charge(
        &self,
        part: &Part,
        scope: RecordScope,
        charge: u128,
    ) -> Result<u128, StoreError> {
        let look_up = self.settlement(part, Role::LookUp, scope, charge);
        match request::response(self.send(look_up, part.partition, Phase::First).await) {
            Ok(Response::Charge(charge)) => Ok(charge),
            Ok(_) => Err(error::protocol("decisions for a charge")),
            Err(error) => Err(not_charged(error)),
        }
    }

    fn settlement(
        &self,
        part: &Part,
        role: Role,
        scope: RecordScope,
        charge: u128,
    ) -> StoreRequest {
        let mut request = self.with_id(part, role, scope, 0);
        if let Some(RequestId { charge: known, .. }) = &mut request.request_id {
            *known = Some(charge);
        }
        request
    }
}
