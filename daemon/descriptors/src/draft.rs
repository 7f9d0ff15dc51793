//! What a file or a control plane says, before it is held against what a domain can be.

use envoy_types::pb::google::protobuf::Struct;

/// How deep descriptors may be in each other.
pub(super) const MAX_DEPTH: usize = 100;

/// One file or resource.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) domain: String,
    pub(super) descriptors: Vec<DescriptorDraft>,
}

/// A descriptor, with what may be in it.
#[derive(Debug, Default)]
pub(super) struct DescriptorDraft {
    /// Where it stands, if that is a file.
    pub(super) line: Option<usize>,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) rate_limit: Option<LimitDraft>,
    pub(super) descriptors: Vec<DescriptorDraft>,
    pub(super) shadow_mode: bool,
    pub(super) quota_mode: bool,
    pub(super) detailed_metric: bool,
    pub(super) value_to_metric: bool,
    pub(super) share_threshold: bool,
    pub(super) metadata: Option<Struct>,
}

/// The limit of a descriptor.
#[derive(Debug, Default)]
pub(super) struct LimitDraft {
    pub(super) line: Option<usize>,
    pub(super) requests_per_unit: u32,
    pub(super) unit: String,
    pub(super) unlimited: bool,
    pub(super) name: String,
    pub(super) replaces: Vec<String>,
    /// Limits in our own notation, each with its line.
    pub(super) texts: Vec<(String, Option<usize>)>,
    /// Whether there is any of unit, requests_per_unit and unlimited.
    pub(super) has_numbers: bool,
    /// Whether there is a field of such texts.
    pub(super) has_texts: bool,
}
