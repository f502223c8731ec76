//! Participants of rooms: stock tunnels, and endpoints that the server calls.
//!
//! For the dispatcher a participant is a provider whose scope is its room. It offers itself under
//! its models, its id, and a name for any participant. Its own defaults and the room's complete its
//! requests. A participant is not trusted: only the parts of its answers that a client needs are
//! passed on.
//!
//! - `accept`: turns an HTTP request into a connected participant, or refuses it in the envelope of
//!   rooms
//! - `refusal`: why a tunnel is refused
//! - `codec`: sends requests, receives a participant's frames
//! - `request`: a job as a frame
//! - `abandoned`: requests without a client that a participant still works on
//! - `offer`: a participant's offer to the dispatcher
//! - `answer`: filters the head of an answer
//! - `endpoint`: one caller for each endpoint, and the life of one
//! - `calls`: jobs at an endpoint
//! - `call`: one job at an endpoint

mod abandoned;
mod accept;
mod answer;
mod call;
mod calls;
mod codec;
mod endpoint;
mod offer;
mod refusal;
mod request;

use rooms::Rooms;
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

/// The participants of all rooms.
#[derive(Clone)]
pub struct Participants {
    rooms: Rooms,
    scheduler: Scheduler,
    links: TaskTracker,
}

impl Participants {
    /// Creates the participants, which offer their capacity to `scheduler`.
    pub fn new(rooms: Rooms, scheduler: Scheduler) -> Self {
        Self { rooms, scheduler, links: TaskTracker::new() }
    }

    /// Tracks the tasks of the links in `links`, so that a caller can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
