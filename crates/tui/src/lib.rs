//! The terminal interface.
