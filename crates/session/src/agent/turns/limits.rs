//! The bounds of one agent session.

/// Prompts that wait for their turn.
pub const MAX_QUEUED: usize = 32;
/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 1024 * 1024;
/// The longest line that is read, in bytes. A driver need not hand in more than one byte over it.
pub const MAX_LINE: usize = 1024 * 1024;
/// Permissions that wait for somebody.
pub const MAX_PENDING: usize = 64;
/// What these together would give to their tools, in bytes.
pub(super) const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;
