//! `GET /api/policies/{name}`, `GET /api/config` and `GET /api/session`.

use serde::Serialize;
use tollgate::Policy;
use tollgate_config::Scope;
use tollgate_engine::{ActiveConfig, Engine, PolicyCounts, Principal};

use crate::counts::Counts;
use crate::history::{History, Series};
use crate::number::Decimal;
use crate::overview::{Reload, limits};

/// One policy.
#[derive(Debug, Serialize)]
pub(crate) struct PolicyDetails<'a> {
    name: &'a str,
    /// Whether it is in the configuration. Other names are counters that several policies share.
    configured: bool,
    limits: Vec<String>,
    shadow: bool,
    on_store_error: Option<&'static str>,
    /// Limits for some keys in place of its own: the number of overrides and tiers.
    variants: usize,
    rates: Counts<Decimal>,
    totals: Counts,
    surfaces: Vec<SurfaceCounts>,
    history: Series,
}

#[derive(Debug, Serialize)]
struct SurfaceCounts {
    surface: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

impl<'a> PolicyDetails<'a> {
    /// The policy or the counters of this name, if there are some.
    pub(crate) fn new(
        engine: &Engine,
        active: &ActiveConfig,
        history: &History,
        name: &'a str,
    ) -> Option<Self> {
        let mut domain_policies = active.domains.policies().map(|(_, policy)| policy);
        let configured = active.policies.get(name).ok();
        let policy = configured.or_else(|| domain_policies.find(|policy| policy.name() == name));
        let counters = engine.counters.by_policy();
        let counters = counters.iter().find(|counters| &*counters.policy == name);
        if policy.is_none() && counters.is_none() {
            return None;
        }
        let variants =
            active.policies.variants(name).map_or(0, |all| all.count().saturating_sub(1));
        Some(PolicyDetails {
            name,
            configured: policy.is_some(),
            limits: policy.map(limits).unwrap_or_default(),
            shadow: policy.is_some_and(Policy::is_shadow),
            on_store_error: policy.map(|policy| policy.on_store_error().as_str()),
            variants,
            rates: history.rates(Some(name)),
            totals: counters.map(Counts::from).unwrap_or_default(),
            surfaces: counters.map(by_surface).unwrap_or_default(),
            history: history.series(Some(name), usize::MAX),
        })
    }
}

/// The decisions of each surface that was used.
fn by_surface(policy: &PolicyCounts) -> Vec<SurfaceCounts> {
    let surfaces = policy.surfaces.iter().map(|(surface, answers)| SurfaceCounts {
        surface: surface.as_str(),
        counts: Counts::from_answers(answers),
    });
    surfaces.filter(|surface| surface.counts != Counts::default()).collect()
}

/// The effective configuration and the last reload.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigDetails<'a> {
    #[serde(flatten)]
    reload: Reload,
    /// Why the last reload was rejected.
    error: Option<&'a str>,
    /// What is doubtful in the files of the active configuration.
    warnings: &'a [String],
    /// The effective configuration without secrets; absent if it was not read from a source.
    yaml: Option<&'a str>,
}

impl<'a> ConfigDetails<'a> {
    pub(crate) fn new(
        engine: &Engine,
        error: Option<&'a str>,
        warnings: &'a [String],
        yaml: Option<&'a str>,
    ) -> Self {
        let reload = Reload::new(&engine.counters.reloads);
        ConfigDetails { reload, error, warnings, yaml }
    }
}

/// The rights of the client.
#[derive(Debug, Serialize)]
pub(crate) struct Session<'a> {
    principal: &'a str,
    /// Whether the daemon has tokens.
    tokens: bool,
    /// Whether the client may reset and block keys.
    operate: bool,
    /// Why it may not.
    reason: Option<String>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(principal: Principal<'a>) -> Self {
        let result = principal.authorize(&[Scope::Operate], "this");
        Session {
            principal: principal.name(),
            tokens: matches!(principal, Principal::Token(_)),
            operate: result.is_ok(),
            reason: result.err().map(|error| error.detail().to_owned()),
        }
    }
}
