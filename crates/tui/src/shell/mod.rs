//! The terminal, and the tasks that ask the server: a thin shell around [`App`].
//!
//! One task polls the server's state each second. One watches each room, one the workspace while it is shown, one the
//! list that is shown, and one reads an answer. All send events through one bounded queue: it slows down a server that
//! sends faster than the terminal draws.
//!
//! - `terminal`: the screen, which is always given back
//! - `poll`, `watch`, `workspace`, `page`, `ask`: the tasks

mod ask;
mod page;
mod poll;
mod terminal;
mod watch;
mod workspace;

use std::{collections::HashMap, io, time::Duration};

use base::Secret;
use client::{ClientError, Warren};
use crossterm::event::{Event as Input, EventStream, KeyEventKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::{AbortHandle, JoinSet},
    time::{Instant, interval, sleep_until, timeout},
};

use self::terminal::Screen;
use crate::{
    app::{
        App, Settings,
        event::{Effect, Event, Question},
        pages::{Page, PageNews},
    },
    draw::draw,
};

/// The most events that wait to be shown.
const WAITING: usize = 256;

/// The most events that are handled before the keyboard is checked again.
const BATCH: usize = 64;

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// How often the interface gets a tick.
const TICK: Duration = Duration::from_secs(1);

/// The deadline of a short question to a server.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why the interface ended, or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// There is no terminal to draw on.
    #[error(
        "the terminal interface needs a terminal for its input and its output; `warren status` \
         and `warren room watch` tell the same without one"
    )]
    NoTerminal,
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
    /// A task stopped at a bug.
    #[error("a part of the interface failed: {0}")]
    Bug(String),
}

/// Runs the interface until the user leaves it, or `stop` completes. `settings.servers` is set here.
///
/// # Errors
/// [`TuiError`], with the terminal as it was before.
pub async fn run(
    servers: Vec<Warren>,
    mut settings: Settings,
    stop: impl Future<Output = ()>,
) -> Result<(), TuiError> {
    settings.servers = servers.iter().map(Warren::url).collect();
    let mut screen = Screen::open()?;
    let mut app = App::new(settings, screen.size()?, Timestamp::now());
    let (events, came) = channel(WAITING);
    let mut tasks = Tasks::new(servers, events);
    tasks.carry_out(app.start());
    drive(&mut app, &mut screen, &mut tasks, came, stop).await
}

async fn drive(
    app: &mut App,
    screen: &mut Screen,
    tasks: &mut Tasks,
    mut came: Receiver<Event>,
    stop: impl Future<Output = ()>,
) -> Result<(), TuiError> {
    let (mut input, mut ticks) = (EventStream::new(), interval(TICK));
    let mut due = Some(Instant::now());
    let mut batch = Vec::with_capacity(BATCH);
    tokio::pin!(stop);
    loop {
        let frame = sleep_until(due.unwrap_or_else(Instant::now));
        tokio::select! {
            // In this order: a server that sends without pause must not delay the end, a frame or a key.
            biased;
            () = &mut stop => return Ok(()),
            () = frame, if due.is_some() => {
                screen.draw(|frame| draw(app, frame))?;
                due = None;
                continue;
            }
            typed = input.next() => match typed {
                Some(typed) => batch.extend(event(typed?)),
                // The terminal is gone.
                None => return Ok(()),
            },
            _ = came.recv_many(&mut batch, BATCH) => {}
            _ = ticks.tick() => batch.push(Event::Tick),
            ended = tasks.ended() => ended?,
        }
        for event in batch.drain(..) {
            let effects = app.handle(Timestamp::now(), event);
            if effects.iter().any(|effect| matches!(effect, Effect::Quit)) {
                return Ok(());
            }
            tasks.carry_out(effects);
        }
        // All events until then share one frame.
        due.get_or_insert_with(|| screen.next_frame(FRAME));
    }
}

/// The terminal's input as an event for the interface.
fn event(input: Input) -> Option<Event> {
    Some(match input {
        // Some terminals, such as those of Windows, report the release of a key as well.
        Input::Key(key) if key.kind == KeyEventKind::Release => return None,
        Input::Key(key) => Event::Key(key),
        Input::Mouse(mouse) => Event::Mouse(mouse),
        Input::Paste(text) => Event::Paste(text),
        Input::Resize(width, height) => Event::Resize(width, height),
        Input::FocusGained | Input::FocusLost => return None,
    })
}

/// The tasks that ask the server.
struct Tasks {
    servers: Vec<Warren>,
    events: Sender<Event>,
    running: JoinSet<()>,
    /// The server that is polled.
    server: usize,
    poll: Option<AbortHandle>,
    watches: HashMap<u64, AbortHandle>,
    workspace: Option<AbortHandle>,
    page: Option<AbortHandle>,
    ask: Option<AbortHandle>,
}

impl Tasks {
    fn new(servers: Vec<Warren>, events: Sender<Event>) -> Self {
        let (running, watches) = (JoinSet::new(), HashMap::new());
        let (server, poll, workspace, page, ask) = Default::default();
        Self { servers, events, running, server, poll, watches, workspace, page, ask }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Quit => {}
                Effect::Poll { epoch, server } => self.poll(epoch, server),
                Effect::Watch { watch, code, password } => {
                    self.watch(watch, &code, password.as_ref());
                }
                Effect::Unwatch { watch } => stop(self.watches.remove(&watch)),
                Effect::WatchWorkspace { watch } => self.watch_workspace(watch),
                Effect::UnwatchWorkspace => stop(self.workspace.take()),
                Effect::Follow { follow, page } => self.follow(follow, page),
                Effect::Unfollow => stop(self.page.take()),
                Effect::MakeKey { name } => {
                    self.change(|server| page::make_key(server, name));
                }
                Effect::RevokeKey { id } => {
                    self.change(|server| page::revoke_key(server, id));
                }
                Effect::Ask(question) => self.ask(question),
                Effect::Cancel => stop(self.ask.take()),
            }
        }
    }

    /// Waits for a task to end. Most tasks never end. A task that panicked is an error.
    async fn ended(&mut self) -> Result<(), TuiError> {
        match self.running.join_next().await {
            Some(Err(error)) if error.is_panic() => Err(TuiError::Bug(error.to_string())),
            Some(_) => Ok(()),
            // No task runs, so none ends: another branch of the loop starts the next one.
            None => std::future::pending().await,
        }
    }

    fn poll(&mut self, epoch: u64, server: usize) {
        stop(self.poll.take());
        self.server = server;
        if let Some(server) = self.servers.get(server).cloned() {
            self.poll = Some(self.running.spawn(poll::run(server, epoch, self.events.clone())));
        }
    }

    fn watch(&mut self, watch: u64, code: &str, password: Option<&Secret>) {
        let Some(server) = self.servers.get(self.server) else { return };
        let room = server.room(code, password);
        let task = watch::run(room, server.url(), watch, self.events.clone());
        self.watches.insert(watch, self.running.spawn(task));
    }

    fn watch_workspace(&mut self, watch: u64) {
        stop(self.workspace.take());
        if let Some(server) = self.servers.get(self.server).cloned() {
            let task = workspace::run(server, watch, self.events.clone());
            self.workspace = Some(self.running.spawn(task));
        }
    }

    fn follow(&mut self, follow: u64, page: Page) {
        stop(self.page.take());
        if let Some(server) = self.servers.get(self.server).cloned() {
            let task = page::run(server, follow, page, self.events.clone());
            self.page = Some(self.running.spawn(task));
        }
    }

    /// Makes one change of keys at the server.
    fn change<Work>(&mut self, work: impl FnOnce(Warren) -> Work)
    where
        Work: Future<Output = PageNews> + Send + 'static,
    {
        let (server, events) = (self.server, self.events.clone());
        let Some(work) = self.servers.get(server).cloned().map(work) else { return };
        self.running.spawn(async move {
            let news = Box::new(work.await);
            // The receiver may be gone; then the interface has ended.
            let _ = events.send(Event::KeyChanged { server, news }).await;
        });
    }

    fn ask(&mut self, question: Question) {
        stop(self.ask.take());
        if let Some(server) = self.servers.get(self.server) {
            let task = ask::run(server.clone(), question, self.events.clone());
            self.ask = Some(self.running.spawn(task));
        }
    }
}

fn stop(task: Option<AbortHandle>) {
    if let Some(task) = task {
        task.abort();
    }
}

/// Asks a question that must be answered soon.
async fn soon<T>(
    url: &str,
    answer: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let late = || ClientError::Late { url: url.to_owned(), after: DEADLINE };
    timeout(DEADLINE, answer).await.unwrap_or_else(|_| Err(late()))
}
