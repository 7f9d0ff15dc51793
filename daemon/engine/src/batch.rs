//! Executing pipelined requests.

use std::borrow::Cow;
use std::time::Duration;

use tollgate::{Check, Cost, Decision, Key, MemoryLimiter, Policy, StoreError};

use crate::access::Principal;
use crate::active::ActiveConfig;
use crate::call::{Call, Outcome, PolicySelector};
use crate::counters::Surface;
use crate::descriptor;
use crate::engine::Engine;
use crate::error::Error;
use crate::execution::{execute, execute_on_memory, execute_operations};
use crate::hint::unknown_tier;
use crate::meter::Meter;
use crate::operation::Action;
use crate::resolution::resolve;

/// The most requests of one call to the store. A call has one deadline: a long pipeline must not
/// miss it because it is long.
const MAX_STORE_BATCH: usize = 256;

/// Executes the requests that a connection has pipelined. Those that need no answer of the store are
/// executed at once; the others are collected and executed together. Decisions are counted once for the
/// whole batch when it is dropped.
#[derive(Debug)]
pub struct Batch<'a> {
    engine: &'a Engine,
    active: &'a ActiveConfig,
    /// The memory store, if that is configured.
    memory: Option<&'a MemoryLimiter>,
    meter: Meter<'a>,
}

impl<'a> Batch<'a> {
    /// Begins a batch, and starts its timer.
    #[inline]
    #[must_use]
    pub fn new(engine: &'a Engine, active: &'a ActiveConfig, surface: Surface) -> Self {
        Batch {
            engine,
            active,
            memory: engine.limiter().as_memory(),
            meter: Meter::start(engine, active, surface, None),
        }
    }

    /// As [`RequestContext::resolve`](crate::RequestContext::resolve).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn resolve(
        &self,
        principal: Principal<'_>,
        selector: PolicySelector<'_>,
        key: &[u8],
    ) -> Result<Cow<'a, Policy>, Error> {
        resolve(self.engine, self.active, principal, selector, key)
    }

    /// As [`RequestContext::tier_hint`](crate::RequestContext::tier_hint).
    #[inline]
    #[must_use]
    pub fn tier_hint(&self, policy: &Policy, tier: Option<&str>) -> Option<Box<str>> {
        tier.and_then(|tier| unknown_tier(self.active, policy, tier))
    }

    /// As [`RequestContext::resolve_descriptor`](crate::RequestContext::resolve_descriptor).
    ///
    /// # Errors
    /// As there.
    pub fn resolve_descriptor(
        &self,
        principal: Principal<'_>,
        domain: &str,
        descriptor: &str,
    ) -> Result<(Cow<'a, Policy>, Vec<u8>), Error> {
        descriptor::resolve(self.engine, self.active, principal, domain, descriptor)
    }

    /// The memory store, if that is configured.
    #[must_use]
    pub fn memory(&self) -> Option<&'a MemoryLimiter> {
        self.memory
    }

    /// The fast path of a plain check that needs no answer of the store: no allocation, no dynamic
    /// dispatch. Absent if the store has to decide.
    #[inline]
    pub fn check(
        &mut self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        note: Option<&str>,
    ) -> Option<Decision> {
        let decision = match self.memory {
            Some(memory) => memory.check_cost(policy, key, cost),
            None => self.engine.limiter().check_now(policy, key, cost)?,
        };
        self.meter.count_one(policy, key.as_bytes(), cost, note, &decision);
        Some(decision)
    }

    /// Decides plain checks on the memory store, in order, and appends the decisions; nothing on another
    /// store. The caller has validated the keys.
    pub fn check_each(&mut self, checks: &[Check<'_>], decisions: &mut Vec<Decision>) {
        let Some(memory) = self.memory else { return };
        let before = decisions.len();
        if let Err(error) = memory.check_each_into(checks, decisions) {
            unreachable!("the caller has validated the keys: {error}");
        }
        for (check, decision) in checks.iter().zip(&decisions[before..]) {
            self.meter.count_one(check.policy, check.key, check.cost, None, decision);
        }
    }

    /// Executes a call on the memory store. Absent on other stores.
    pub fn execute_now(&mut self, call: &mut Call<'_, '_>) -> Option<Result<Outcome, Error>> {
        let memory = self.memory?;
        let result = execute_on_memory(memory, call).map_err(StoreError::from);
        self.meter.count(call.counted(&result, None));
        Some(call.end(result))
    }

    /// Executes calls in order, in as few round trips as possible; one result for each.
    pub async fn execute_all(&mut self, calls: &mut [Call<'_, '_>]) -> Vec<Result<Outcome, Error>> {
        let mut results = Vec::with_capacity(calls.len());
        // After an inspection that the store did not answer, later ones fail without waiting.
        let mut unavailable: Option<StoreError> = None;
        let mut rest = &*calls;
        while let Some(first) = rest.first() {
            if first.action == Action::Inspect {
                let result = match unavailable.take() {
                    Some(error) => Err(error),
                    None => execute(self.engine, first).await,
                };
                unavailable =
                    result.as_ref().err().filter(|error| error.failure().is_some()).cloned();
                results.push(result);
                rest = &rest[1..];
                continue;
            }
            let candidates = rest.iter().take(MAX_STORE_BATCH);
            let len = candidates.take_while(|call| call.action != Action::Inspect).count();
            let (operations, next) = rest.split_at(len);
            results.extend(execute_operations(self.engine, operations, Duration::MAX).await);
            rest = next;
        }
        let mut ended = Vec::with_capacity(calls.len());
        for (call, result) in calls.iter_mut().zip(results) {
            self.meter.count(call.counted(&result, None));
            ended.push(call.end(result));
        }
        ended
    }
}
