//! The contents of a file or of a control plane's resource, before validation.

use envoy_types::pb::google::protobuf::Struct;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

/// The maximum depth of nested descriptors.
pub(super) const MAX_DEPTH: usize = 100;

/// A file or resource.
#[derive(Debug, Default)]
pub(super) struct DomainConfig {
    pub(super) domain: String,
    pub(super) descriptors: Vec<DescriptorConfig>,
}

/// A descriptor with its children.
#[derive(Debug, Default)]
pub(super) struct DescriptorConfig {
    /// The line, if it comes from a file.
    pub(super) line: Option<usize>,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) rate_limit: Option<LimitConfig>,
    pub(super) descriptors: Vec<DescriptorConfig>,
    pub(super) shadow_mode: bool,
    pub(super) quota_mode: bool,
    pub(super) detailed_metric: bool,
    pub(super) value_to_metric: bool,
    pub(super) share_threshold: bool,
    pub(super) metadata: Option<Struct>,
}

/// The limit of a descriptor.
#[derive(Debug, Default)]
pub(super) struct LimitConfig {
    pub(super) line: Option<usize>,
    pub(super) requests_per_unit: u32,
    pub(super) unit: String,
    pub(super) unlimited: bool,
    pub(super) name: String,
    pub(super) replaces: Vec<String>,
    /// Limits in Tollgate's notation, each with its line.
    pub(super) texts: Vec<(String, Option<usize>)>,
    /// Whether unit, requests_per_unit or unlimited is present.
    pub(super) has_numbers: bool,
    /// Whether `limit` is present.
    pub(super) has_texts: bool,
}

/// Converts a resource.
///
/// # Errors
/// The descriptors are nested too deeply.
pub(super) fn from_resource(config: &RateLimitConfig) -> Result<DomainConfig, String> {
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
