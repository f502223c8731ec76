//! Close codes and their reasons: those of stock servers, and a few of WebSocket's own.

/// Closed in order: the node's work here is done.
pub const NORMAL: (u16, &str) = (1000, "goodbye");
/// A newer connection of the same model and name has come.
pub const REPLACED: (u16, &str) = (4000, "Bye");
/// The query lacks a parameter, or has an invalid one.
pub const BAD_QUERY: u16 = 4001;
/// The token is not the server's.
pub const INVALID_TOKEN: (u16, &str) = (4002, "Invalid token");
/// The node was silent for too long while it had work.
pub const SILENT: (u16, &str) = (1001, "no sign of life");
/// The node broke the rules of WebSocket, or does not read.
pub const BROKEN: (u16, &str) = (1002, "link error");
