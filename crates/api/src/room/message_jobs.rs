//! Jobs that came as the spec's `llm:request`.
//!
//! The reader of such a job's answer reports the tokens and the end to its room, so that the end
//! never overtakes a token. The observer of jobs looks up here which jobs came as messages, and
//! records here which participant got them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::{JobId, RoomId};

/// The most requests of one room in flight at once.
const OF_A_ROOM: usize = 64;

/// The most requests of all rooms in flight at once.
const IN_ALL: usize = 4096;

/// The unfinished jobs that came as messages.
#[derive(Debug, Default)]
pub struct MessageJobs(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    jobs: HashMap<JobId, MessageJob>,
    /// The ids that clients gave their requests, by room.
    requests: HashMap<RoomId, HashSet<String>>,
}

#[derive(Debug)]
struct MessageJob {
    /// The id that the client gave its request.
    request: String,
    /// The participant that got the job last.
    holder: Option<String>,
}

/// Why a request is not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// The room has a request of this id in flight.
    Twice,
    /// Too many requests are in flight.
    TooMany,
}

/// A request in flight. It counts until this is dropped.
pub(super) struct InFlight {
    jobs: Arc<MessageJobs>,
    job: JobId,
    room: RoomId,
    request: String,
}

impl MessageJobs {
    /// The client's id of a job; `None` when the job did not come as a message.
    pub fn request(&self, job: JobId) -> Option<String> {
        self.lock().jobs.get(&job).map(|job| job.request.clone())
    }

    /// Records that a participant got this job, if the job came as a message.
    pub fn given(&self, job: JobId, participant: String) {
        if let Some(job) = self.lock().jobs.get_mut(&job) {
            job.holder = Some(participant);
        }
    }

    /// The participant that got a job last.
    pub(super) fn holder(&self, job: JobId) -> Option<String> {
        self.lock().jobs.get(&job)?.holder.clone()
    }

    /// Takes a request in, unless its id is in use in the room or too many requests are in flight.
    pub(super) fn take(
        self: &Arc<Self>,
        room: &RoomId,
        request: &str,
        job: JobId,
    ) -> Result<InFlight, NotTaken> {
        let mut inner = self.lock();
        let of_room = inner.requests.get(room);
        if of_room.is_some_and(|requests| requests.contains(request)) {
            return Err(NotTaken::Twice);
        }
        if of_room.is_some_and(|requests| requests.len() >= OF_A_ROOM) || inner.jobs.len() >= IN_ALL
        {
            return Err(NotTaken::TooMany);
        }
        inner.requests.entry(room.clone()).or_default().insert(request.to_owned());
        inner.jobs.insert(job, MessageJob { request: request.to_owned(), holder: None });
        drop(inner);
        let (jobs, room) = (Arc::clone(self), room.clone());
        Ok(InFlight { jobs, job, room, request: request.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut inner = self.jobs.lock();
        inner.jobs.remove(&self.job);
        if let Some(requests) = inner.requests.get_mut(&self.room) {
            requests.remove(&self.request);
            if requests.is_empty() {
                inner.requests.remove(&self.room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(name: &str) -> RoomId {
        RoomId::from(name)
    }

    #[test]
    fn a_room_has_each_request_id_once_at_a_time() {
        let jobs = Arc::new(MessageJobs::default());
        let first = jobs.take(&room("a"), "r1", JobId::from_random(1));
        let second = jobs.take(&room("a"), "r1", JobId::from_random(2));
        assert_eq!(second.err(), Some(NotTaken::Twice));
        let elsewhere = jobs.take(&room("b"), "r1", JobId::from_random(3));
        assert!(elsewhere.is_ok(), "another room's ids are its own");
        drop((first, elsewhere));
        assert!(jobs.take(&room("a"), "r1", JobId::from_random(4)).is_ok());
        let inner = jobs.lock();
        assert!(inner.jobs.is_empty() && inner.requests.is_empty(), "nothing is left behind");
    }

    #[test]
    fn requests_in_flight_are_bounded_for_a_room_and_in_all() {
        let jobs = Arc::new(MessageJobs::default());
        let take = |n: usize| {
            let room = room(&(n / OF_A_ROOM).to_string());
            jobs.take(&room, &n.to_string(), JobId::from_random(n as u128))
        };
        let taken: Vec<_> = (0..OF_A_ROOM).map(|n| take(n).ok().unwrap()).collect();
        let more = jobs.take(&room("0"), "more", JobId::from_random(u128::MAX));
        assert_eq!(more.err(), Some(NotTaken::TooMany));
        let others: Vec<_> = (OF_A_ROOM..IN_ALL).map(|n| take(n).ok().unwrap()).collect();
        assert_eq!(take(IN_ALL).err(), Some(NotTaken::TooMany));
        drop((taken, others));
        assert!(take(IN_ALL).is_ok());
    }

    #[test]
    fn only_jobs_that_came_as_messages_have_a_holder_here() {
        let jobs = Arc::new(MessageJobs::default());
        let (one, other) = (JobId::from_random(1), JobId::from_random(2));
        let _in_flight = jobs.take(&room("a"), "r1", one);
        assert!(jobs.request(one).is_some() && jobs.request(other).is_none());
        jobs.given(one, "p1".to_owned());
        jobs.given(other, "p2".to_owned());
        assert_eq!((jobs.holder(one).as_deref(), jobs.holder(other)), (Some("p1"), None));
    }
}
