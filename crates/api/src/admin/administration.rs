//! What administration needs.

use std::sync::Arc;

use access::Token;
use store::{AuditStore, UsageStore};

use super::recent::RecentRequests;

/// What administration needs beside the keys and the scheduler.
pub struct Administration {
    /// The administrator's token.
    pub token: Token,
    /// The ledger.
    pub usage: Arc<dyn UsageStore>,
    /// Where actions are noted.
    pub audit: Arc<dyn AuditStore>,
    /// The requests that ended last. An observer: the scheduler tells it of them.
    pub requests: Arc<RecentRequests>,
}
