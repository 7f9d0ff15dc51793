//! Events in the order of their time.
