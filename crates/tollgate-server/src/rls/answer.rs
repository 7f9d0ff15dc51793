//! What a request is answered.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use super::asked::{self, Asked};
use super::batch;
use super::refusal::Refusal;
use super::status::{Spoken, speak};
use crate::config::{Charging, Scope};
use crate::http::{Exchange, Problem};

/// Answers a request for a caller that is known.
///
/// # Errors
/// No decision was made. Envoy lets its client pass then, unless it is told otherwise.
pub(crate) async fn answer(
    exchange: &Exchange<'_>,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Refusal> {
    exchange.caller.must_have(&[Scope::Check], "ShouldRateLimit")?;
    hold(exchange, request)?;
    let domains = exchange.daemon.domains(exchange.live);
    let asked = asked::all(exchange, &domains, request)?;
    let said = batch::decide(exchange, &asked).await?;
    let spoken: Vec<_> = asked.iter().zip(&said).map(|(asked, said)| speak(asked, said)).collect();
    let code = if is_over(&asked, &spoken) && !exchange.live.envoy.shadow {
        Code::OverLimit
    } else {
        Code::Ok
    };
    Ok(RateLimitResponse {
        overall_code: code.into(),
        statuses: spoken.into_iter().map(|it| it.status).collect(),
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

/// Whether a request is over: one of its descriptors is, or all of those are that only count so.
fn is_over(asked: &[Asked<'_>], spoken: &[Spoken]) -> bool {
    let (mut quotas, mut quotas_over) = (0, 0);
    for (asked, spoken) in asked.iter().zip(spoken) {
        let is_over = spoken.status.code == i32::from(Code::OverLimit);
        if asked.target.is_quota() {
            quotas += 1;
            quotas_over += u32::from(is_over);
        } else if is_over {
            return true;
        }
    }
    quotas > 0 && quotas == quotas_over
}
