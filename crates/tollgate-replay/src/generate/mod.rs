//! Generated traffic in place of a log.
