//! Messages and frames between two Warrens.

mod frames;
mod messages;
