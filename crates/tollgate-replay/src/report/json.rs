//! A report as JSON.
