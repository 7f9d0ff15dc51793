//! A guide in chapters, each with examples that are compiled and run as tests.
//!
//! | Chapter | Question |
//! |---|---|
//! | [`algorithms`] | Which algorithm, and how many requests can it admit? |
//! | [`keys`] | What identifies a client? |
//! | [`several_limits`] | How do several limits, policies and costs work together? |
//! | [`redis`] | How do processes share limits, and what happens while the server is unavailable? |
//! | [`testing`] | How does a test control the time? |

#[doc = include_str!("algorithms.md")]
pub mod algorithms {}

#[doc = include_str!("keys.md")]
pub mod keys {}

#[doc = include_str!("several_limits.md")]
pub mod several_limits {}

#[doc = include_str!("redis.md")]
pub mod redis {}

#[doc = include_str!("testing.md")]
pub mod testing {}
