//! Messages from a node to a relay.

use super::{
    discover::{Discover, Filter},
    envelope::Envelope,
    fault::Fault,
    forward::{Forward, ForwardKind},
    id::RelayNodeId,
    register::Register,
    scan,
};

/// A message to a relay.
#[derive(Debug)]
pub enum ToRelay<'a> {
    /// The sender's registration.
    Register(Box<Register>),
    /// A request for the list of nodes.
    Discover {
        /// The asking node, if it names itself.
        node: Option<RelayNodeId>,
        /// Which nodes are wanted.
        filter: Filter,
    },
    /// A message for another node.
    Forward(Forward<'a>),
}

impl<'a> ToRelay<'a> {
    /// Reads a message, in either form.
    ///
    /// # Errors
    /// [`Fault`], whose [`reply`](Fault::reply) is for the sender.
    pub fn read(text: &'a str) -> Result<Self, Fault> {
        if let Some(data) = scan::relay_data(text) {
            return Ok(Self::Forward(data));
        }
        let envelope = Envelope::read(text)?;
        match &*envelope.kind {
            "register" => Register::read(envelope.payload).map(Box::new).map(Self::Register),
            "discover" => {
                let (node, filter) = Discover::read(envelope.payload)?;
                Ok(Self::Discover { node, filter })
            }
            name => match ForwardKind::named(name) {
                Some(kind) => Forward::read(kind, &envelope).map(Self::Forward),
                None => Err(envelope.unsupported()),
            },
        }
    }
}
