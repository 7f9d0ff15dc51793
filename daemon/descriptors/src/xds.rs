//! Converts the resources of a control plane.

use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

use super::config::{DescriptorConfig, DomainConfig, LimitConfig, MAX_DEPTH};

/// Converts a resource.
///
/// # Errors
/// The descriptors are nested too deeply.
pub(super) fn read(config: &RateLimitConfig) -> Result<DomainConfig, String> {
    let descriptors = descriptors(&config.descriptors, 1)?;
    Ok(DomainConfig { domain: config.domain.clone(), descriptors })
}

fn descriptors(all: &[RateLimitDescriptor], depth: usize) -> Result<Vec<DescriptorConfig>, String> {
    if !all.is_empty() && depth > MAX_DEPTH {
        return Err(format!("descriptors may be nested at most {MAX_DEPTH} deep"));
    }
    all.iter().map(|resource| descriptor(resource, depth)).collect()
}

fn descriptor(resource: &RateLimitDescriptor, depth: usize) -> Result<DescriptorConfig, String> {
    Ok(DescriptorConfig {
        line: None,
        key: resource.key.clone(),
        value: resource.value.clone(),
        rate_limit: resource.rate_limit.as_ref().map(limit),
        descriptors: descriptors(&resource.descriptors, depth + 1)?,
        shadow_mode: resource.shadow_mode,
        quota_mode: resource.quota_mode,
        detailed_metric: resource.detailed_metric,
        // The protocol has no field for these two.
        value_to_metric: false,
        share_threshold: false,
        metadata: resource.metadata.clone().filter(|metadata| !metadata.fields.is_empty()),
    })
}

fn limit(policy: &RateLimitPolicy) -> LimitConfig {
    LimitConfig {
        requests_per_unit: policy.requests_per_unit,
        unit: match RateLimitUnit::try_from(policy.unit) {
            Ok(unit) => unit.as_str_name().to_owned(),
            Err(_) => policy.unit.to_string(),
        },
        unlimited: policy.unlimited,
        name: policy.name.clone(),
        replaces: policy.replaces.iter().map(|replace| replace.name.clone()).collect(),
        has_numbers: true,
        ..LimitConfig::default()
    }
}
