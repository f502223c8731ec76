//! Rooms of several servers that act as one: which rooms are here, and the way to the homes of the others.
//!
//! - `keep`: for which rooms this server is the home
//! - `carry`: a request on its way to its room's home; `serve`: that request at the home

mod carry;
mod keep;
mod serve;

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use access::Moment;
use api::{Api, PassedOn, RoomHomes};
use axum::{Router, extract::Request, response::Response};
use fellows::{Fellows, Service};
use fleet::ServerId;
use rooms::Rooms;
use scheduler::Scheduler;
use store::RoomHome;
use tokio::{
    io::AsyncWriteExt,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::keep::Keeper;
use crate::stores::Stores;

/// The longest time between two steps that see to it that each room has a home.
const LOOK: Duration = Duration::from_secs(1);

/// How long a room's home may take to accept the description of a client.
const WORDS: Duration = Duration::from_secs(5);

/// The rooms of a server among others that act as one. Clones share them.
#[derive(Clone)]
pub(crate) struct RoomsOfFleet {
    rooms: Rooms,
    fellows: Fellows,
    scheduler: Scheduler,
    /// The tasks that serve requests which fellows have passed on.
    passed_on: TaskTracker,
    /// Kept alive here: the API has a weak reference only.
    _ways: Arc<Ways>,
}

impl RoomsOfFleet {
    /// Begins with the rooms whose home this server is, and carries requests about other rooms to their homes.
    /// `router` has all paths; it serves what other servers pass on.
    pub(crate) async fn start(
        api: &Api,
        router: Router,
        (rooms, stores): (&Rooms, &Stores),
        (fellows, scheduler): (Fellows, &Scheduler),
        links: TaskTracker,
    ) -> Self {
        let (server, start) = (fellows.name().as_str().to_owned(), fellows.id().to_string());
        rooms.set_own(RoomHome { server, start });
        begin(rooms, stores).await;
        let ways = Arc::new(Ways { fellows: fellows.clone(), links });
        let homes: Arc<dyn RoomHomes> = Arc::<Ways>::clone(&ways);
        api.set_room_homes(Arc::downgrade(&homes));
        let (api, passed_on) = (api.clone(), TaskTracker::new());
        let serving = passed_on.clone();
        let handler = move |stream| {
            serving.spawn(serve::serve(stream, api.clone(), router.clone()));
        };
        fellows.serve(Service::ROOMS, Arc::new(handler));
        let (rooms, scheduler) = (rooms.clone(), scheduler.clone());
        Self { rooms, fellows, scheduler, passed_on, _ways: ways }
    }

    /// Waits until all answers to fellows are written, at most this long.
    pub(crate) async fn see_off(&self, within: Duration) {
        self.passed_on.close();
        let _late = timeout(within, self.passed_on.wait()).await;
    }

    /// Sees to it until `stop` that each room has a home.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let Self { rooms, fellows, scheduler, .. } = self;
        let mut changes = fellows.changes();
        let mut keeper = Keeper::new(rooms, fellows.id(), fellows.name().clone());
        while !stop.is_cancelled() {
            let others: HashMap<_, _> =
                fellows.all().into_iter().map(|fellow| (fellow.id, fellow.name)).collect();
            let is_connected = fellows.is_connected();
            let step = move || {
                let now = Instant::now();
                keeper.members(&others, is_connected, now);
                let given_up = keeper.step(now, Moment::now().wall_ms);
                (keeper, given_up)
            };
            let Ok((next, given_up)) = spawn_blocking(step).await else {
                tracing::error!("rooms of servers that are gone are not taken over any more");
                return;
            };
            keeper = next;
            given_up.iter().for_each(|scope| scheduler.close(scope));
            let due =
                keeper.due().map_or(LOOK, |due| due.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = sleep(due.min(LOOK)) => {}
                changed = changes.changed() => if changed.is_err() { return },
                () = stop.cancelled() => {}
            }
        }
    }
}

/// Reads the rooms from the database. While it is away, this server has none yet.
async fn begin(rooms: &Rooms, stores: &Stores) {
    let (rooms, stores) = (rooms.clone(), stores.clone());
    let taken = spawn_blocking(move || {
        let changes = stores.changed_rooms()?;
        rooms.take_over(changes, Moment::now().wall_ms);
        Ok::<_, store::StoreError>(())
    });
    match taken.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the rooms are not known yet"),
        Err(error) => tracing::error!(%error, "the rooms could not be read"),
    }
}

/// The way to the homes of rooms.
struct Ways {
    fellows: Fellows,
    links: TaskTracker,
}

impl RoomHomes for Ways {
    fn carry(
        &self,
        home: &RoomHome,
        passed_on: PassedOn,
        request: Request,
    ) -> Pin<Box<dyn Future<Output = Result<Response, String>> + Send>> {
        let stream = home.start.parse::<ServerId>().ok();
        let stream = stream.and_then(|id| self.fellows.open(id, Service::ROOMS));
        let (links, words) = (self.links.clone(), carry::words(&passed_on));
        Box::pin(async move {
            let mut stream = stream.ok_or("it is not there")?;
            match timeout(WORDS, stream.write_all(&words)).await {
                Ok(Ok(())) => carry::over(stream, request, &links).await,
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("it takes nothing".to_owned()),
            }
        })
    }
}
