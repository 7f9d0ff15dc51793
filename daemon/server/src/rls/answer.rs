//! What a request is answered.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use super::asked::{self, Asked, Target};
use super::batch::{self, Said};
use super::count::count;
use super::headers::headers;
use super::metadata::metadata;
use super::refusal::Refusal;
use super::status::{Spoken, speak};
use crate::config::{Charging, RuleOnStoreError, Scope};
use crate::http::{Exchange, Problem};

/// The most characters of a name that the log shows.
const MAX_SHOWN: usize = 128;

/// Answers a request for a caller that is known.
///
/// # Errors
/// No decision was made. Envoy lets its client pass then, unless it is told otherwise.
pub(crate) async fn answer(
    exchange: &Exchange<'_>,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Refusal> {
    let answered = decide(exchange, request).await;
    match answered {
        // A failure of the store was counted as such.
        Ok(_) | Err(Refusal::StoreAway) => {}
        Err(_) => exchange.daemon.rls.count_service_error(),
    }
    answered
}

async fn decide(
    exchange: &Exchange<'_>,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Refusal> {
    exchange.caller.must_have(&[Scope::Check], "ShouldRateLimit")?;
    hold(exchange, request)?;
    exchange.daemon.discovery.known()?;
    let asked = asked::all(exchange, request)?;
    let said = batch::decide(exchange, &asked).await?;
    hold_to_store(exchange, &asked, &said)?;
    let spoken: Vec<_> = asked.iter().zip(&said).map(|(asked, said)| speak(asked, said)).collect();
    count(exchange, request, &asked, &said, &spoken);
    tell_of_unknown(exchange, request, &asked);
    let envoy = &exchange.live.envoy;
    Ok(RateLimitResponse {
        overall_code: code(exchange, &asked, &spoken).into(),
        response_headers_to_add: headers(exchange, &asked, &said, &spoken),
        dynamic_metadata: envoy.dynamic_metadata.then(|| metadata(request, &asked, &spoken)),
        statuses: spoken.into_iter().map(|x| x.status).collect(),
        ..RateLimitResponse::default()
    })
}

/// Refuses what the reference refuses.
fn hold(exchange: &Exchange<'_>, request: &RateLimitRequest) -> Result<(), Refusal> {
    let (reference, detail) = if request.domain.is_empty() {
        let detail = "domain is empty; send the one of a file of envoy.config, or a policy's name";
        ("rate limit domain must not be empty", detail)
    } else if request.descriptors.is_empty() {
        let detail = "descriptors is empty; send at least one";
        ("rate limit descriptor list must not be empty", detail)
    } else {
        return Ok(());
    };
    Err(match exchange.live.envoy.charging {
        Charging::Atomic => Problem::bad(detail).into(),
        Charging::Reference => Refusal::Reference(reference),
    })
}

/// Refuses a request of whose rules the store decided nothing, where that is to be an error.
fn hold_to_store(
    exchange: &Exchange<'_>,
    asked: &[Asked<'_>],
    said: &[Said],
) -> Result<(), Refusal> {
    if exchange.live.envoy.on_store_error != RuleOnStoreError::Error {
        return Ok(());
    }
    let mut both = asked.iter().zip(said);
    if !both.any(|(asked, said)| asked.is_of_rule() && said.is_degraded()) {
        return Ok(());
    }
    exchange.daemon.rls.count_store_error();
    Err(Refusal::StoreAway)
}

/// What a request is told as a whole.
fn code(exchange: &Exchange<'_>, asked: &[Asked<'_>], spoken: &[Spoken]) -> Code {
    let envoy = &exchange.live.envoy;
    if !is_over(asked, spoken, envoy.compat.quota_mode) {
        return Code::Ok;
    }
    if envoy.shadow {
        exchange.daemon.rls.count_global_shadow();
        return Code::Ok;
    }
    Code::OverLimit
}

/// Whether a request is over: one of its descriptors is, or all of those of quotas are.
fn is_over(asked: &[Asked<'_>], spoken: &[Spoken], all_quotas: bool) -> bool {
    let (mut quotas, mut quotas_over) = (0, 0);
    for (asked, spoken) in asked.iter().zip(spoken) {
        if asked.is_quota(all_quotas) {
            quotas += 1;
            quotas_over += u32::from(spoken.denies());
        } else if spoken.denies() {
            return true;
        }
    }
    quotas > 0 && quotas == quotas_over
}

/// Tells the log, now and then, that Envoy asks about what nothing is configured for.
fn tell_of_unknown(exchange: &Exchange<'_>, request: &RateLimitRequest, asked: &[Asked<'_>]) {
    if !asked.iter().any(|x| matches!(x.target, Target::Unknown)) {
        return;
    }
    let daemon = exchange.daemon;
    if let Some((untold, all)) = daemon.unknown_domains.count(daemon.clock.now()) {
        let domain: String = request.domain.chars().take(MAX_SHOWN).collect();
        tracing::warn!(
            domain,
            untold,
            all,
            "Envoy asks about a domain that is in no file of envoy.config and is no policy's name; \
             all of it passes"
        );
    }
}
