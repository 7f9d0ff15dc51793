//! What every store must answer.
//!
//! - [`rows`]: policy, time, operation, key and cost, each with its decision.
//! - [`model`]: the same in the plainest arithmetic, from the text of the design alone.
//! - [`properties`]: what holds whatever is asked, of any [`subject`].

pub mod model;
pub mod properties;
pub mod rows;
pub mod subject;
