//! Rooms: the spec's messages, and the API of current stock clients.
//!
//! The spec's 17 messages are posted as JSON and come back as unnamed events ([`message`]). Stock
//! clients use an HTTP API with envelopes ([`plane`]), named events ([`event`]) and a WebSocket
//! tunnel for participants ([`tunnel`]). Both use the same supporting types.
//!
//! - [`message`]: messages between clients and servers (spec, "Room Messages" to "List Messages")
//! - [`types`]: participants, rooms, metrics (spec, "Supporting Types")
//! - [`config`]: generation parameters: defaults of rooms and participants
//! - [`plane`]: the bodies of the HTTP API, in their envelopes
//! - [`event`]: the events of a room, as named events
//! - [`tunnel`]: a participant's WebSocket
//! - [`defaults`]: adds defaults to a request's body, and turns an `llm:request` into a request
//! - [`limits`]: limits for texts and numbers; [`invalid`]: the errors for values beyond them
//! - [`selector`]: the participants that a request is for

mod chunk;
pub mod config;
mod decode_message;
mod decode_plane;
pub mod defaults;
pub mod event;
pub mod invalid;
pub mod limits;
pub mod message;
pub mod plane;
pub mod selector;
pub mod tunnel;
pub mod types;

pub use config::{GenerationConfig, PublicConfig, RuntimeConfig};
pub use decode_message::BadMessage;
pub use defaults::llm_request_body;
pub use event::RoomEvent;
pub use invalid::Invalid;
pub use message::{ClientMessage, ServerMessage};
pub use selector::Selector;
pub use types::{
    Capabilities, Capability, Connection, ConnectionKind, LlmMetrics, MachineSpecs,
    ParticipantInfo, Protocol, RoomInfo, RoomSummary, Status,
};

#[cfg(test)]
mod tests;
