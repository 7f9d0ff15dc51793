//! The formats of logs: what stands in a line, and when it happened.
