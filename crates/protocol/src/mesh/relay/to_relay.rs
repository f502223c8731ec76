//! What a relay reads.

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
    /// Who the sender is and what it offers.
    Register(Box<Register>),
    /// Who else is there?
    Discover {
        /// Who says that it asks, if it says so.
        node: Option<RelayNodeId>,
        /// Which nodes are wanted.
        filter: Filter,
    },
    /// For another node.
    Forward(Forward<'a>),
}

impl<'a> ToRelay<'a> {
    /// Reads a message, in either form.
    ///
    /// # Errors
    /// [`Fault`], whose [`reply`](Fault::reply) is for who sent it.
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
