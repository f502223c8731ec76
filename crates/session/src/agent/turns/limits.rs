//! The bounds of one agent session.

/// The most prompts that wait for their turn.
pub const MAX_QUEUED: usize = 32;
/// The most bytes of prompts that wait: all of them are stored together.
pub const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;
/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 1024 * 1024;
/// The longest line that is read and shown as it is, in bytes. Of a longer one long texts are cut.
pub const MAX_LINE: usize = 1024 * 1024;
/// The most permission requests that wait for a decision.
pub const MAX_PENDING: usize = 64;
/// The most bytes of tool input in all waiting permission requests together.
pub(super) const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;
