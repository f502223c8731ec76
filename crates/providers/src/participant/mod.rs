//! Participants of rooms: stock tunnels, and endpoints that the server calls.
//!
//! To the dispatcher a participant is a provider whose scope is its room; it offers itself under its
//! models, under its id, and for anybody. What it is sent is completed with its defaults and the
//! room's. A participant is a stranger: of what it sends, only what an answer needs is passed on.
//!
//! - `accept`: from an HTTP request to a tunnel, or a refusal in the envelope of rooms
//! - `refusal`: why a tunnel is refused
//! - `link`: the life of one tunnel
//! - `session`: what each frame of a participant means
//! - `request`: a job as a frame
//! - `late`: requests that nobody waits for, which a participant goes on with
//! - `sender`: what the scheduler tells a participant
//! - `offer`: what a participant offers to the dispatcher
//! - `answer`: what of a head is passed on
//! - `callers`: who calls which endpoint
//! - `endpoint`: the life of one endpoint
//! - `calls`: jobs at an endpoint
//! - `call`: one job at an endpoint

mod accept;
mod answer;
mod call;
mod callers;
mod calls;
mod endpoint;
mod late;
mod link;
mod offer;
mod refusal;
mod request;
mod sender;
mod session;

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
    /// Participants that offer their capacity to `scheduler`.
    pub fn new(rooms: Rooms, scheduler: Scheduler) -> Self {
        Self { rooms, scheduler, links: TaskTracker::new() }
    }

    /// The same; the tasks of its links are among `links`, so that somebody can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
