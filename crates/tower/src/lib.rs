#![doc = include_str!("../README.md")]

mod address;
mod admission;
mod body;
mod client;
mod decide;
mod grpc;
mod key;
mod layer;
mod problem;
mod rejection;
mod rule;
mod service;

pub use address::ClientAddress;
pub use admission::Admission;
pub use body::ResponseBody;
pub use client::{ClientBody, ClientError, ClientRateLimit, ClientRateLimitLayer};
pub use key::KeyExtractor;
pub use layer::RateLimitLayer;
pub use rejection::{BodyFormat, Denial, Rejection};
pub use rule::{Fallback, Rule};
pub use service::{RateLimit, ResponseFuture};
pub use tollgate_headers::{
    AddressFormat, AddressHeader, ClientAddressError, HeaderStyle, Ipv6Prefix, Networks,
};

/// An error of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Compiles and runs the examples of the page about the middleware.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/middleware.md")]
struct MiddlewarePage;

/// Compiles and runs the examples of the page about migration from governor.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migration/governor.md")]
struct GovernorPage;
