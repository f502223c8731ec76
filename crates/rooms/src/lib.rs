//! Rooms, their participants and their events.
//!
//! A room is a scope of providers with a code. With the code (and the password, where there
//! is one) a client may use its participants, lend a model to it, and watch its events.
//!
//! - [`rooms`]: all rooms of a server: made, found, listed, swept
//! - [`room`]: one room: its participants and their rights
//! - [`participant`]: a join, and the connection of a participant
//! - [`activity`]: jobs of rooms, as their participants and watchers see them
//! - [`events`]: the events for watchers: replayed, bounded, never waited for
//! - [`codes`]: codes that people can say and type
//! - [`endpoint`]: which addresses the server calls for a participant
//! - [`error`]: why something is refused
//! - `state`, `member`, `stored`: a room and its participants at a moment, and their rows on the disk; pure
//! - `check`: what may not come into a room
//! - `password`: what joining and using a room may need
//! - `attempts`: who tries too often; pure
//! - `token`, `clock`: what they say

pub mod activity;
mod attempts;
mod check;
mod clock;
pub mod codes;
pub mod endpoint;
pub mod error;
pub mod events;
mod member;
pub mod participant;
mod password;
pub mod room;
pub mod rooms;
mod state;
mod stored;
mod token;

pub use activity::{JobEnded, JobStarted};
pub use endpoint::{Endpoints, Reached};
pub use error::{Refused, RoomError};
pub use events::{Form, Next, Sight, Source, Subscription};
pub use participant::{Connection, Joined, Joining, Kind};
pub use room::{Available, Room};
pub use rooms::{Created, NewRoom, Rooms, Settings};
pub use token::uuid;
