//! The contents of a file or resource, before validation.

use envoy_types::pb::google::protobuf::Struct;

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
