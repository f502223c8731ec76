//! Requests that run beside the connection, in lanes. A lane runs its requests in order, or a few
//! of them at once.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::timeout,
};
use tracing::Instrument as _;
use workspace::Refusal;

/// How long to wait for the requests of a client that has left.
const LEFT_OVER: Duration = Duration::from_secs(60);

/// A kind of request that may take a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Queries, which take little work.
    Look,
    /// Creating and changing sessions and projects.
    Make,
    /// Ending sessions.
    Kill,
    /// File operations, in the order of the requests.
    Files,
    Git,
    Teams,
    /// Waits for team workers, and for sessions that move.
    Waits,
}

/// The bounds of a lane, and its name in refusals.
struct Bounds {
    what: &'static str,
    at_once: usize,
    waiting: usize,
}

/// The bounds of each lane, in the order of [`Lane`], which is the index here.
const BOUNDS: [Bounds; 7] = [
    Bounds { what: "lists asked for", at_once: 1, waiting: 64 },
    Bounds { what: "sessions and projects being made or changed", at_once: 1, waiting: 32 },
    Bounds { what: "sessions being ended", at_once: 8, waiting: 64 },
    Bounds { what: "requests about files", at_once: 1, waiting: 64 },
    Bounds { what: "requests for git", at_once: 1, waiting: 16 },
    Bounds { what: "requests about teams", at_once: 1, waiting: 64 },
    Bounds { what: "waits for team workers and for sessions that move", at_once: 16, waiting: 0 },
];

/// The work of one request.
pub(crate) type Job = BoxFuture<'static, ()>;

/// The running and waiting requests of one connection.
#[derive(Default)]
pub(crate) struct Lanes {
    waiting: [VecDeque<Job>; BOUNDS.len()],
    running: [usize; BOUNDS.len()],
    tasks: JoinSet<()>,
    /// The lane of each running request, by the id of its task.
    of: HashMap<Id, Lane>,
}

impl Lanes {
    /// Runs a request now, or when its turn comes.
    ///
    /// # Errors
    /// When too many requests of the lane are waiting.
    pub(crate) fn put(&mut self, lane: Lane, job: Job) -> Result<(), Refusal> {
        self.room(lane)?;
        if self.running[lane as usize] < BOUNDS[lane as usize].at_once {
            self.start(lane, job);
        } else {
            self.waiting[lane as usize].push_back(job);
        }
        Ok(())
    }

    /// Whether the lane takes one more request.
    ///
    /// # Errors
    /// When too many requests of it are waiting.
    pub(crate) fn room(&self, lane: Lane) -> Result<(), Refusal> {
        let Bounds { at_once, waiting, what } = BOUNDS[lane as usize];
        if self.waiting[lane as usize].len() < waiting || self.running[lane as usize] < at_once {
            return Ok(());
        }
        Err(Refusal::TooMany { what, most: at_once + waiting })
    }

    /// Waits until a request is done, and starts the next one of its lane. `None` when no request
    /// is running. May be dropped at any await.
    ///
    /// # Errors
    /// When the request panicked, so that it has sent no answer.
    pub(crate) async fn next(&mut self) -> Option<Result<(), JoinError>> {
        let done = self.tasks.join_next_with_id().await?;
        let id = match &done {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        if let Some(lane) = self.of.remove(&id) {
            self.running[lane as usize] -= 1;
            if let Some(job) = self.waiting[lane as usize].pop_front() {
                self.start(lane, job);
            }
        }
        Some(done.map(|_| ()))
    }

    /// Runs all waiting requests to their end, in order. After `cut_off`, no waiting request is
    /// started any more. After [`LEFT_OVER`], this returns: running requests go on, waiting ones
    /// are dropped.
    pub(crate) async fn finish(mut self, cut_off: impl Future<Output = ()>) {
        if timeout(LEFT_OVER, self.rest(cut_off)).await.is_err() {
            let dropped = self.waiting.iter().map(VecDeque::len).sum::<usize>();
            tracing::warn!(dropped, "what a client has asked for goes on although it has gone");
        }
        // A set that is dropped aborts its tasks.
        self.tasks.detach_all();
    }

    async fn rest(&mut self, cut_off: impl Future<Output = ()>) {
        let mut cut_off = pin!(cut_off);
        loop {
            tokio::select! {
                biased;
                // Before `next`, which starts a waiting request.
                () = &mut cut_off => break,
                done = self.next() => if done.is_none() { return },
            }
        }
        self.waiting = <_>::default();
        while self.next().await.is_some() {}
    }

    fn start(&mut self, lane: Lane, job: Job) {
        self.running[lane as usize] += 1;
        let task = self.tasks.spawn(job.in_current_span());
        self.of.insert(task.id(), lane);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt as _;
    use tokio::sync::{Notify, Semaphore};

    use super::*;

    #[tokio::test]
    async fn a_lane_keeps_its_order_and_does_not_hold_up_others() {
        let (mut lanes, done) = (Lanes::default(), Arc::<Mutex<Vec<usize>>>::default());
        let first = Arc::new(Notify::new());
        for number in 0..5 {
            let (done, first) = (Arc::clone(&done), Arc::clone(&first));
            let job = async move {
                if number == 0 {
                    first.notified().await;
                }
                done.lock().unwrap().push(number);
            };
            lanes.put(Lane::Files, job.boxed()).unwrap();
        }
        lanes.put(Lane::Git, async {}.boxed()).unwrap();
        lanes.next().await.unwrap().unwrap();
        assert!(done.lock().unwrap().is_empty(), "git was done");
        first.notify_one();
        while lanes.next().await.is_some() {}
        assert_eq!(*done.lock().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn each_lane_is_bounded_and_says_of_what_there_is_too_much() {
        for lane in
            [Lane::Look, Lane::Make, Lane::Kill, Lane::Files, Lane::Git, Lane::Teams, Lane::Waits]
        {
            let (mut lanes, bounds) = (Lanes::default(), &BOUNDS[lane as usize]);
            let open = Arc::new(Semaphore::new(0));
            let job = || {
                let open = Arc::clone(&open);
                async move { drop(open.acquire().await) }.boxed()
            };
            for _ in 0..bounds.at_once + bounds.waiting {
                lanes.put(lane, job()).unwrap();
            }
            assert_eq!(lanes.tasks.len(), bounds.at_once);
            let refused = lanes.put(lane, job()).unwrap_err().to_string();
            assert!(refused.contains(bounds.what), "{refused}");
            open.add_permits(1);
            lanes.next().await.unwrap().unwrap();
            assert!(lanes.put(lane, job()).is_ok());
        }
    }

    #[tokio::test]
    async fn a_failed_request_does_not_block_the_next() {
        let mut lanes = Lanes::default();
        lanes.put(Lane::Git, async { panic!("on purpose") }.boxed()).unwrap();
        lanes.put(Lane::Git, async {}.boxed()).unwrap();
        assert!(lanes.next().await.unwrap().is_err());
        assert!(lanes.next().await.unwrap().is_ok());
        assert!(lanes.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn work_of_a_vanished_client_is_awaited_for_a_bounded_time() {
        let mut lanes = Lanes::default();
        lanes.put(Lane::Kill, tokio::time::sleep(LEFT_OVER / 2).boxed()).unwrap();
        lanes.put(Lane::Make, std::future::pending().boxed()).unwrap();
        lanes.put(Lane::Make, async { panic!("it was never begun") }.boxed()).unwrap();
        let began = tokio::time::Instant::now();
        lanes.finish(std::future::pending()).await;
        assert_eq!(began.elapsed(), LEFT_OVER);
    }

    /// Three requests of 3 s each in one lane, and the list of those that are done.
    fn three() -> (Lanes, Arc<Mutex<Vec<usize>>>) {
        let (mut lanes, done) = (Lanes::default(), Arc::<Mutex<Vec<usize>>>::default());
        for number in 0..3 {
            let done = Arc::clone(&done);
            let job = async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                done.lock().unwrap().push(number);
            };
            lanes.put(Lane::Files, job.boxed()).unwrap();
        }
        (lanes, done)
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_requests_of_a_vanished_client_are_done_in_order() {
        let (lanes, done) = three();
        lanes.finish(std::future::pending()).await;
        assert_eq!(*done.lock().unwrap(), [0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_requests_are_not_begun_after_their_clients_rights_ended() {
        let (lanes, done) = three();
        lanes.finish(tokio::time::sleep(Duration::from_secs(4))).await;
        assert_eq!(*done.lock().unwrap(), [0, 1]);
        let (lanes, done) = three();
        lanes.finish(std::future::ready(())).await;
        assert_eq!(*done.lock().unwrap(), [0]);
    }
}
