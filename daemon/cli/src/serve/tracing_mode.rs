//! The export of decisions as spans: off, or for which service.

/// Whether decisions are exported as spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tracing {
    /// If the environment variables name a collector.
    FromEnvironment,
    /// Never.
    Off,
    /// With the attributes of this service.
    As(Service),
}

/// The service that spans name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) instance: Option<String>,
    /// The share of traces to export, in millionths, unless the caller has decided.
    pub(crate) sampled_millionths: u64,
}
