//! This node's registration at a mesh relay.

use base::NodeId;
use protocol::mesh::{
    Capabilities,
    relay::{
        ConnectionInfo, ForwardKind, Offer, Register, RelayNodeId, register::MAX_CAPABILITIES,
    },
};
use seal::{Identity, challenge_text, offer_text, register_text, sign_hex};
use serde_json::value::RawValue;

use super::sort::Sort;
use crate::this_machine::ThisMachine;

/// This node's registration, on one connection.
#[derive(Debug)]
pub(super) struct Registration {
    sort: Sort,
    /// The mesh relay's name, as it is signed with a challenge.
    host: String,
    /// The nonce of the mesh relay's challenge, once it has come.
    nonce: Option<String>,
    /// The offer that the mesh relay was last sent.
    sent: Option<AnnouncedOffer>,
}

/// The part of an offer by which other nodes choose a peer.
#[derive(Debug, PartialEq)]
struct AnnouncedOffer {
    models: Vec<String>,
    available: bool,
    capacity: Option<u32>,
}

impl Registration {
    /// A registration at a mesh relay of this sort and name.
    pub(super) fn new(sort: Sort, host: String) -> Self {
        Self { sort, host, nonce: None, sent: None }
    }

    /// The sort that the mesh relay had when the connection began.
    pub(super) fn sort(&self) -> Sort {
        self.sort
    }

    /// Whether the mesh relay has sent a challenge, so that the signature cannot be reused.
    pub(super) fn is_challenged(&self) -> bool {
        self.nonce.is_some()
    }

    /// Takes in the mesh relay's challenge. Only the first one counts.
    pub(super) fn challenged(&mut self, nonce: String) {
        self.nonce.get_or_insert(nonce);
    }

    /// The registration, signed for the mesh relay's challenge or as stock peers sign. `None` while
    /// a Warren's mesh relay has not sent its challenge.
    pub(super) fn message(&mut self, machine: &ThisMachine) -> Option<String> {
        let (identity, node) = (&machine.identity, machine.id());
        let text = match &self.nonce {
            Some(nonce) => challenge_text(nonce, &self.host, &node),
            // An attacker in between may hold back the challenge, to get the signature that can be
            // reused.
            None if self.sort == Sort::Warren => return None,
            None => register_text(&node),
        };
        let capabilities = machine.facts.capabilities();
        self.sent = Some(AnnouncedOffer::of(&capabilities));
        let register = Register {
            public_key: node.to_string(),
            node: RelayNodeId::from(node),
            wg_public_key: Some(hex::encode(identity.stock_wg_public())),
            display_name: machine.settings.name.clone(),
            capabilities: within_bounds(capabilities),
            signature: sign_hex(identity, &text),
        };
        Some(register.encode())
    }

    /// The registration, if the offer has changed since the last one.
    pub(super) fn if_changed(&mut self, machine: &ThisMachine) -> Option<String> {
        let now = AnnouncedOffer::of(&machine.facts.capabilities());
        let changed = self.sent.as_ref().is_some_and(|sent| *sent != now);
        if changed { self.message(machine) } else { None }
    }
}

impl AnnouncedOffer {
    fn of(capabilities: &Capabilities) -> Self {
        Self {
            models: capabilities.loaded_models.clone(),
            available: capabilities.is_available,
            capacity: capabilities.max_concurrent_requests,
        }
    }
}

/// The capabilities, with as many models as fit. A link brings the others.
fn within_bounds(mut capabilities: Capabilities) -> Box<RawValue> {
    loop {
        let raw = serde_json::value::to_raw_value(&capabilities);
        // They have only strings, numbers and lists, so they always serialise.
        let raw = raw.unwrap_or_else(|_| RawValue::NULL.to_owned());
        if raw.get().len() <= MAX_CAPABILITIES || capabilities.loaded_models.is_empty() {
            return raw;
        }
        let half = capabilities.loaded_models.len() / 2;
        capabilities.loaded_models.truncate(half);
    }
}

/// The answer to a stock Mac's offer of a direct connection. It gives no usable address, so that
/// the Mac opens a session.
pub(super) fn answer(identity: &Identity, peer: &NodeId, session: &str) -> String {
    let (from, to) = (identity.node_id().to_string(), peer.to_string());
    let signature = sign_hex(identity, &offer_text(&from, &to, session));
    let connection_info = ConnectionInfo {
        public_ip: "0.0.0.0".to_owned(),
        public_port: 0,
        local_ip: None,
        local_port: None,
        nat_type: "unknown".to_owned(),
        wg_public_key: Some(hex::encode(identity.stock_wg_public())),
    };
    let session = session.to_owned();
    Offer { from, to, session, connection_info, signature }.encode(ForwardKind::Answer)
}
