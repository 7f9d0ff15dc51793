//! Executing single requests.

use std::borrow::Cow;
use std::time::Duration;

use tollgate::{Cost, Decision, Key, Policy};

use crate::access::Principal;
use crate::active::ActiveConfig;
use crate::call::{Call, CheckRequest, Outcome, PolicySelector};
use crate::counters::Surface;
use crate::descriptor;
use crate::engine::Engine;
use crate::error::Error;
use crate::execution::{execute, execute_operations};
use crate::hint::unknown_tier;
use crate::meter::Meter;
use crate::resolution::resolve;

/// The context of one request.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The configuration that was active when the request arrived.
    pub active: &'a ActiveConfig,
    /// The authenticated client.
    pub principal: Principal<'a>,
    /// The interface on which it arrived.
    pub surface: Surface,
    /// Its header `traceparent`.
    pub traceparent: Option<&'a str>,
}

impl<'a> RequestContext<'a> {
    /// Resolves a policy for a key: the named policy with its tier or the key's override, or the
    /// policy of inline limits. Checks the principal's rights first.
    ///
    /// # Errors
    /// The principal may not use it, or there is no such policy.
    #[inline]
    pub fn resolve(
        &self,
        selector: PolicySelector<'_>,
        key: &[u8],
    ) -> Result<Cow<'a, Policy>, Error> {
        resolve(self.engine, self.active, self.principal, selector, key)
    }

    /// The hint for the answer if the policy does not have the tier.
    #[inline]
    #[must_use]
    pub fn tier_hint(&self, policy: &Policy, tier: Option<&str>) -> Option<Box<str>> {
        tier.and_then(|tier| unknown_tier(self.active, policy, tier))
    }

    /// Resolves a descriptor of Envoy's rate limit service, such as `remote_address=10.0.0.1`, to
    /// the policy of its rule and the key of its counter.
    ///
    /// # Errors
    /// There is no such domain, no rule with limits matches, or the principal may not use it.
    pub fn resolve_descriptor(
        &self,
        domain: &str,
        descriptor: &str,
    ) -> Result<(Cow<'a, Policy>, Vec<u8>), Error> {
        descriptor::resolve(self.engine, self.active, self.principal, domain, descriptor)
    }

    /// Decides and counts a plain check without a note, if that needs no answer of the store.
    #[inline]
    #[must_use]
    pub fn check_now(&self, policy: &Policy, key: Key<'_>, cost: Cost) -> Option<Decision> {
        let mut meter = self.start_meter();
        let decision = self.engine.limiter().check_now(policy, key, cost)?;
        meter.count_one(policy, key.as_bytes(), cost, None, &decision);
        Some(decision)
    }

    /// Executes a call: counts its decisions and ends its audit record.
    ///
    /// # Errors
    /// The store rejects the call, or is unavailable and the policy does not decide without it.
    pub async fn execute(&self, call: &mut Call<'_, '_>) -> Result<Outcome, Error> {
        let mut meter = self.start_meter();
        // The fast path: nearly all calls are plain checks.
        if let Some(CheckRequest { policy, key, cost, note, .. }) = call.plain_check()
            && let Ok(key) = Key::new(key)
            && let Some(decision) = self.engine.limiter().check_now(policy, key, *cost)
        {
            meter.count_one(policy, key.as_bytes(), *cost, note.as_deref(), &decision);
            return Ok(Outcome::Decision(decision));
        }
        let result = execute(self.engine, call).await;
        meter.count(call.counted(&result, None));
        drop(meter);
        call.end(result)
    }

    /// Executes independent calls of one request, each as a whole, within a deadline. One latency
    /// is recorded for all of them. If a call that requires the store fails, the client gets an
    /// error for the request, so that all its checks count as errors.
    pub async fn execute_each(
        &self,
        calls: &mut [Call<'_, '_>],
        deadline: Duration,
    ) -> Vec<Result<Outcome, Error>> {
        let mut meter = self.start_meter();
        let results = execute_operations(self.engine, calls, deadline).await;
        let both = calls.iter().zip(&results);
        let error = both.clone().find_map(|(call, result)| call.request_error(result));
        meter.count(both.flat_map(|(call, result)| call.counted(result, error)));
        drop(meter);
        calls.iter_mut().zip(results).map(|(call, result)| call.end(result)).collect()
    }

    #[inline]
    fn start_meter(&self) -> Meter<'a> {
        Meter::start(self.engine, self.active, self.surface, self.traceparent)
    }
}
