//! The thread that has the connections, and the work that is handed to it.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc, Mutex as BlockingMutex, PoisonError,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use futures_util::future::{FutureExt, LocalBoxFuture};
use tokio::{
    runtime::Builder,
    sync::{Mutex, Semaphore, mpsc},
    task::{LocalSet, spawn_local},
    time::timeout,
};
use tokio_postgres::{Client, Config};

use super::{bell::Bell, connecting::Connector, failure::Failure};

/// The most connections of one server.
const CONNECTIONS: usize = 4;

/// The most pieces of work at once, including those that wait for a connection.
const AT_ONCE: usize = 256;

/// How much longer than the work's own deadline its caller waits for an answer.
const GRACE: Duration = Duration::from_secs(1);

/// A piece of work.
type Work = Box<dyn FnOnce(Rc<Pool>) -> LocalBoxFuture<'static, ()> + Send>;

/// The connections of one server to its database.
pub(super) struct Connections {
    work: mpsc::Sender<Work>,
    places: Arc<Semaphore>,
    bell: Arc<Bell>,
    problem: Arc<BlockingMutex<Option<String>>>,
}

impl Connections {
    /// Starts the thread, which ends when this is dropped. No connection is made yet.
    pub(super) fn start(config: Config) -> Result<Self, Failure> {
        let (work, to_do) = mpsc::channel(AT_ONCE);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let (bell, problem) = (Arc::<Bell>::default(), Arc::default());
        let no_thread = |error: std::io::Error| Failure::Away(error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let of_pool = Arc::clone(&bell);
        let run = move || {
            let pool = Rc::new(Pool::new(Connector::new(config, of_pool)));
            LocalSet::new().block_on(&runtime, run(pool, to_do));
        };
        thread::Builder::new().name("postgres".to_owned()).spawn(run).map_err(no_thread)?;
        Ok(Self { work, places, bell, problem })
    }

    /// Has a piece of work done on one of the connections, and waits for it.
    pub(super) fn run<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.ask(within, work);
        self.note(&done);
        done
    }

    fn ask<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let full = |_| Failure::Away(format!("{AT_ONCE} others wait for it"));
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(full)?;
        let (answer, answered) = sync_channel(1);
        let work: Work = Box::new(move |pool| {
            pool.answer(within, work, answer).map(move |()| drop(place)).boxed_local()
        });
        // The queue has as many places as the semaphore, so it has room for each caller that holds one.
        self.work.try_send(work).map_err(|_| ended())?;
        answered.recv_timeout(within + GRACE).unwrap_or_else(|why| Err(unanswered(why, within)))
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Why the last piece of work could not be done.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether the database could be used. It could if it has answered, even if it refused something.
    fn note<T>(&self, done: &Result<T, Failure>) {
        let problem = match done {
            Err(Failure::Away(problem)) => Some(problem.clone()),
            Err(Failure::Newer { found, known }) => {
                Some(format!("its tables are of version {found}, and this server knows {known}"))
            }
            Ok(_) | Err(Failure::Refused(_)) => None,
        };
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

fn unanswered(why: RecvTimeoutError, within: Duration) -> Failure {
    match why {
        RecvTimeoutError::Timeout => Failure::late(within),
        RecvTimeoutError::Disconnected => ended(),
    }
}

/// Starts each piece of work as it comes.
async fn run(pool: Rc<Pool>, mut to_do: mpsc::Receiver<Work>) {
    while let Some(work) = to_do.recv().await {
        spawn_local(work(Rc::clone(&pool)));
    }
}

/// The connections, on their thread.
struct Pool {
    places: Semaphore,
    idle: RefCell<Vec<Client>>,
    connecting: Rc<Mutex<Connector>>,
}

impl Pool {
    fn new(connecting: Connector) -> Self {
        let (idle, connecting) = (RefCell::default(), Rc::new(Mutex::new(connecting)));
        Self { places: Semaphore::new(CONNECTIONS), idle, connecting }
    }

    async fn answer<T: 'static>(
        self: Rc<Self>,
        within: Duration,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
        answer: SyncSender<Result<T, Failure>>,
    ) {
        let late = |_| Err(Failure::late(within));
        let done = timeout(within, self.lend(work)).await.unwrap_or_else(late);
        // A caller that no longer waits has had an error already.
        let _gone = answer.send(done);
    }

    /// Lends a connection to a piece of work. If the work is dropped, or fails because the database is away, the
    /// connection is not used again.
    async fn lend<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let _place = self.places.acquire().await.map_err(|_| ended())?;
        let mut client = self.client().await?;
        let done = work(&mut client).await;
        if !client.is_closed() && !done.as_ref().is_err_and(Failure::ends_its_connection) {
            self.idle.borrow_mut().push(client);
        }
        done
    }

    async fn client(&self) -> Result<Client, Failure> {
        self.idle.borrow_mut().retain(|client| !client.is_closed());
        let idle = self.idle.borrow_mut().pop();
        match idle {
            Some(client) => Ok(client),
            None => self.new_client().await,
        }
    }

    /// Makes a connection. A task of its own does it, so that it goes on if the caller's time is over: bringing the
    /// tables up to date may take longer.
    async fn new_client(&self) -> Result<Client, Failure> {
        let connecting = Rc::clone(&self.connecting);
        let made = spawn_local(async move { connecting.lock().await.connect().await });
        made.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn ended() -> Failure {
    Failure::Away("its connections have ended".to_owned())
}
