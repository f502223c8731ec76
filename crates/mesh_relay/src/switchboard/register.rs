//! Registration: a connection becomes a node.

use base::NodeId;
use protocol::mesh::{
    date::AppleTime,
    relay::{Code, Facts, PeerRecord, Register, RegisterAck, RelayError},
};
use seal::{challenge_text, register_text};

use super::{Connection, Node, Now, Switchboard, close};
use crate::remember::REMEMBERED;

impl Switchboard {
    pub(super) fn register(&mut self, now: Now, connection: Connection, register: Register) {
        if let Err((code, words)) = self.check(now, connection, &register) {
            tracing::info!(node = %register.node, %code, words, "a registration was refused");
            self.refuse(connection, code, &RelayError::new(code, words));
            if code == Code::NotAdmitted {
                self.close(now, connection, close::NOT_ADMITTED);
            }
            return;
        }
        let before = self.nodes.get(&register.node).copied();
        // Before the acknowledgement: a node that has come back must have one connection only.
        if let Some(older) = before.filter(|older| *older != connection) {
            self.close(now, older, close::REPLACED);
        }
        let ack = RegisterAck {
            node: register.node.clone(),
            registered_at: AppleTime::from_unix_ms(now.unix_ms),
            ttl_seconds: self.settings.ttl.as_secs_f64(),
        };
        self.send(connection, ack.encode());
        self.enter(now, connection, register);
    }

    fn enter(&mut self, now: Now, connection: Connection, register: Register) {
        let node = Node {
            record: PeerRecord::new(&register),
            facts: Facts::read(&register.capabilities),
            name: register.display_name,
            signature: register.signature,
            heard_ms: now.unix_ms,
            id: register.node,
        };
        let id = node.id.clone();
        let Some(line) = self.lines.get_mut(&connection) else { return };
        let early = line.early.take();
        if let (Some(_), Some(key)) = (&line.challenge, id.key()) {
            self.memory.proved(key, now.unix_ms);
        }
        // Other nodes choose by its facts. A change is announced as a join, which stock peers
        // understand.
        let changed = line.node.as_ref().is_some_and(|before| before.facts != node.facts);
        let is_announced = changed && line.changes.take(now.instant).is_ok();
        line.node = Some(node);
        if self.nodes.insert(id, connection).is_none() || is_announced {
            self.tell_joined(now, connection);
        }
        // Now the list that a stock gateway asked for too early is sent.
        if let Some(filter) = early {
            self.discover(now, connection, &filter, true);
        }
    }

    fn check(
        &self,
        now: Now,
        connection: Connection,
        register: &Register,
    ) -> Result<(), (Code, &'static str)> {
        let line = self.lines.get(&connection);
        let known = line.and_then(|line| line.node.as_ref());
        if known.is_some_and(|node| node.id != register.node) {
            let words = "This connection is registered as another node: open one for each";
            return Err((Code::InvalidRegister, words));
        }
        if !self.settings.admission.admits(register.node.key()) {
            return Err((Code::NotAdmitted, close::NOT_ADMITTED.1));
        }
        // A signature that was verified on this connection is not verified again.
        let is_verified = known.is_some_and(|node| node.signature == register.signature);
        if !is_verified {
            let signed = self.check_signature(now, connection, register);
            signed.map_err(|words| (Code::InvalidSignature, words))?;
        }
        if self.nodes.len() >= self.settings.max_nodes && !self.nodes.contains_key(&register.node) {
            return Err((Code::RelayFull, close::FULL.1));
        }
        Ok(())
    }

    fn check_signature(
        &self,
        now: Now,
        connection: Connection,
        register: &Register,
    ) -> Result<(), &'static str> {
        let challenge = self.lines.get(&connection).and_then(|line| line.challenge.as_ref());
        let Some(key) = register.node.key() else {
            let anybody = self.settings.accept_unsigned && challenge.is_none();
            return if anybody { Ok(()) } else { Err("A node's id is its public key here") };
        };
        let text = match challenge {
            Some(challenge) => challenge_text(&challenge.nonce, &challenge.host, &key),
            None if self.is_remembered(now, &key) => {
                return Err("This node signs challenges: offer the subprotocol warren.mesh.2");
            }
            None if register.signature.is_empty() => return self.check_unsigned(register),
            None => register_text(&key),
        };
        let good = (self.verify)(&key, &text, &register.signature);
        if good {
            Ok(())
        } else {
            Err("The signature is not this node's over what is to be signed")
        }
    }

    fn check_unsigned(&self, register: &Register) -> Result<(), &'static str> {
        if !self.settings.accept_unsigned {
            return Err("A registration must be signed here");
        }
        let holder = self.nodes.get(&register.node).and_then(|holder| self.node(*holder));
        match holder {
            Some(holder) if !holder.signature.is_empty() => {
                Err("This node is here with a signature: who has none does not take its place")
            }
            _ => Ok(()),
        }
    }

    fn is_remembered(&self, now: Now, key: &NodeId) -> bool {
        let ago = self.memory.last_proof(key).map(|at| now.unix_ms.saturating_sub(at));
        ago.is_some_and(|ago| u128::from(ago) < REMEMBERED.as_millis())
    }

    pub(super) fn node(&self, connection: Connection) -> Option<&Node> {
        self.lines.get(&connection)?.node.as_ref()
    }
}
