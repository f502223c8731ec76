//! Rooms, their participants and their events.
//!
//! A room is a scope of providers with a code. With the code, and the password if there is one, a
//! client may use the room's participants, lend a model to it, and watch its events.
//!
//! - [`rooms`]: all rooms of a server: made, found, listed, swept
//! - [`room`]: one room: its participants and their rights
//! - [`participant`]: a join, and the connection of a participant
//! - [`activity`]: the jobs of rooms, as participants and watchers see them
//! - [`events`]: the events for watchers: replayed, bounded, never blocking
//! - [`codes`]: codes that people can say and type
//! - [`endpoint`]: the addresses that the server calls for a participant
//! - [`error`]: the errors of rooms
//! - `state`, `member`, `stored`: a room and its participants at one moment, and their rows on the
//!   disk; pure
//! - `machine_address`: the addresses of machines, distinguished from those of clouds' services; pure
//! - `check`: validation of input to rooms
//! - `password`: passwords for joining and using a room
//! - `attempts`: limits on addresses that try too often; pure
//! - `token`, `clock`: tokens, ids, and the current time

pub mod activity;
mod attempts;
mod check;
mod clock;
pub mod codes;
pub mod endpoint;
pub mod error;
pub mod events;
mod machine_address;
mod member;
pub mod participant;
mod password;
pub mod room;
pub mod rooms;
mod state;
mod stored;
mod token;

pub use activity::{JobEnded, JobStarted};
pub use endpoint::{Endpoints, ResolvedEndpoint};
pub use error::{EntryError, RoomError};
pub use events::{Form, Next, Sight, Source, Subscription};
pub use participant::{Connection, JoinAnswer, JoinRequest, Kind};
pub use room::{Available, Room};
pub use rooms::{Caller, HostedRoom, KnownRoom, NewRoom, Place, Rooms, Settings};
pub use token::uuid;
