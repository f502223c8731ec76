//! Rooms, their participants and their events.
//!
//! A room is a scope of providers with a code. Whoever knows the code (and the password, where there
//! is one) may use its participants, lend a model to it, and see what happens in it.
//!
//! - [`rooms`]: all rooms of a server: made, found, listed, swept
//! - [`room`]: one room: who is in it, who may do what
//! - [`participant`]: who joins, and the connection of a participant
//! - [`activity`]: jobs of rooms, as their participants and watchers see them
//! - [`events`]: what happened, for whoever watches: replayed, bounded, never waited for
//! - [`codes`]: codes that people can say and type
//! - [`password`]: what joining and using a room may need
//! - [`attempts`]: who tries too often
//! - [`endpoint`]: which addresses the server calls for a participant
//! - [`error`]: why something is refused

pub mod activity;
pub mod attempts;
pub mod codes;
pub mod endpoint;
pub mod error;
pub mod events;
pub mod participant;
pub mod password;
pub mod room;
pub mod rooms;

pub use activity::{JobStarted, JobEnded};
pub use endpoint::{Endpoints, Reached};
pub use error::{Refused, RoomError};
pub use events::{Form, Next, Subscription};
pub use participant::{Connection, Joined, Joining, Kind};
pub use room::{Available, Room};
pub use rooms::{Created, NewRoom, Rooms, Settings};
