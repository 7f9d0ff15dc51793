//! Converts the resources of a control plane.

use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

use super::draft::{DescriptorDraft, Draft, LimitDraft, MAX_DEPTH};

/// Converts a resource.
///
/// # Errors
/// The descriptors are nested too deeply.
pub(super) fn draft(config: &RateLimitConfig) -> Result<Draft, String> {
    let descriptors = descriptors(&config.descriptors, 1)?;
    Ok(Draft { domain: config.domain.clone(), descriptors })
}

fn descriptors(all: &[RateLimitDescriptor], depth: usize) -> Result<Vec<DescriptorDraft>, String> {
    if !all.is_empty() && depth > MAX_DEPTH {
        return Err(format!("descriptors may be nested at most {MAX_DEPTH} deep"));
    }
    all.iter().map(|x| descriptor(x, depth)).collect()
}

fn descriptor(sent: &RateLimitDescriptor, depth: usize) -> Result<DescriptorDraft, String> {
    Ok(DescriptorDraft {
        line: None,
        key: sent.key.clone(),
        value: sent.value.clone(),
        rate_limit: sent.rate_limit.as_ref().map(limit),
        descriptors: descriptors(&sent.descriptors, depth + 1)?,
        shadow_mode: sent.shadow_mode,
        quota_mode: sent.quota_mode,
        detailed_metric: sent.detailed_metric,
        // The protocol has no field for these two.
        value_to_metric: false,
        share_threshold: false,
        metadata: sent.metadata.clone().filter(|metadata| !metadata.fields.is_empty()),
    })
}

fn limit(sent: &RateLimitPolicy) -> LimitDraft {
    LimitDraft {
        requests_per_unit: sent.requests_per_unit,
        unit: match RateLimitUnit::try_from(sent.unit) {
            Ok(unit) => unit.as_str_name().to_owned(),
            Err(_) => sent.unit.to_string(),
        },
        unlimited: sent.unlimited,
        name: sent.name.clone(),
        replaces: sent.replaces.iter().map(|replace| replace.name.clone()).collect(),
        has_numbers: true,
        ..LimitDraft::default()
    }
}
