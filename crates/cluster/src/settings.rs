//! How a member is set up.

use std::time::Duration;

use base::Secret;

/// How a member is set up. Later changes by clients are stored, and override this.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The secret that all members share; `None` until one is made or an invitation brings it.
    pub token: Option<Secret>,
    /// Peer ports to dial: `HOST:PORT`, `ws://…` or `wss://…`.
    pub peers: Vec<String>,
    /// Whether addresses learnt from members are dialled as well.
    pub discovery: bool,
    /// Whether plain peers may link from other machines and are dialled there. The token is then
    /// sent to them in the clear.
    pub allow_plain: bool,
    /// The name of this machine, for people.
    pub name: String,
    /// The addresses at which others reach the peer port: `HOST:PORT`.
    pub addresses: Vec<String>,
    /// The peer port.
    pub port: u16,
    /// How often each end of a link gives a sign of life.
    pub heartbeat: Duration,
    /// How long a client's requests wait for a link to the member that serves them.
    pub patience: Duration,
    /// How long a member must be without a direct link before a carried one is opened.
    pub carry_after: Duration,
    /// How old a tombstone must be before it may be dropped.
    pub tombstone_age: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            peers: Vec::new(),
            discovery: true,
            allow_plain: false,
            name: String::new(),
            addresses: Vec::new(),
            port: 0,
            heartbeat: Duration::from_secs(1),
            patience: Duration::from_secs(15),
            carry_after: Duration::from_secs(10),
            tombstone_age: Duration::from_secs(24 * 3600),
        }
    }
}
