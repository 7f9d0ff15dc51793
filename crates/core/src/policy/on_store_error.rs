//! The answer of a policy while its store is unavailable.

/// What a policy answers while its store is unavailable. The strictest answer is the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum OnStoreError {
    /// Admits every request and charges nothing.
    Allow,
    /// Decides in the process, with its share of each limit: the shares of all processes add up to the
    /// limit. Without a limiter that knows the processes, every request is denied.
    #[default]
    Local,
    /// Denies every request.
    Deny,
}

impl OnStoreError {
    /// The name in configuration files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            OnStoreError::Allow => "allow",
            OnStoreError::Local => "local",
            OnStoreError::Deny => "deny",
        }
    }
}
