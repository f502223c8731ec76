//! Participants of rooms: stock tunnels, and endpoints that the server calls.

use http::{Request, Response};
use rooms::Rooms;
use scheduler::Scheduler;

/// The participants of all rooms.
#[derive(Clone)]
pub struct Participants {
    rooms: Rooms,
    scheduler: Scheduler,
}

impl Participants {
    /// Participants that offer their capacity to `scheduler`.
    pub fn new(rooms: Rooms, scheduler: Scheduler) -> Self {
        Self { rooms, scheduler }
    }

    /// Answers a request to `/v1/rooms/{code}/participants/{id}/tunnel`: `101` and a link of its own
    /// task, or a refusal in the envelope of the HTTP API.
    pub async fn connect<B>(&self, request: &mut Request<B>) -> Response<String> {
        let _ = (request, &self.rooms, &self.scheduler);
        todo!()
    }

    /// Calls the endpoints of participants that have one, for ever.
    pub async fn call_endpoints(self) {
        todo!()
    }
}
