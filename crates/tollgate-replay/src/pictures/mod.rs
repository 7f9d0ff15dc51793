//! Pictures of a report, in light and dark.
