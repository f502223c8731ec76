//! The parts that the administration endpoints need.

use std::sync::Arc;

use access::Token;
use store::{AuditStore, UsageStore};

use super::{recent::RecentRequests, steps::RecentSeries};
use crate::joining::Joining;

/// The parts that the administration endpoints need beside the keys and the scheduler.
pub struct Administration {
    /// The administrator's token.
    pub token: Token,
    /// The ledger.
    pub usage: Arc<dyn UsageStore>,
    /// The audit log, in which the operator's actions are written.
    pub audit: Arc<dyn AuditStore>,
    /// The most recently ended requests. An observer: the scheduler reports each ended request to
    /// it.
    pub requests: Arc<RecentRequests>,
    /// The last minutes as a series of points. An observer, too; a timer of the server ends each step.
    pub series: Arc<RecentSeries>,
    /// How machines join.
    pub joining: Joining,
}
