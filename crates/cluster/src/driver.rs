//! Drives the replica: passes events to it, stores its facts, sends its messages, and shows its
//! changes in the directory.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use replica::{
    Change, Config, Fact, Incarnation, Input, Key, LinkId, Message, NodeId, Output, Refused,
    Replica,
};
use store::Change as Row;
use tokio::{
    sync::{mpsc, oneshot},
    task,
    time::sleep,
};
use wire::{Outbox, until};

use crate::{
    directory::Directory,
    facts::{Facts, FactsError},
    link::frame::LinkFrame,
    notices::Notices,
};

/// The most events that wait for the replica. If more wait, messages of members are dropped;
/// digests make up for them.
const WAITING: usize = 4096;
/// The most events that are handled before their facts are stored together.
const TOGETHER: usize = 256;
/// A store that fails is tried again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Why a write was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The replica's rules do not allow it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The driver has ended: the daemon is stopping.
    #[error("the server is stopping")]
    Stopping,
}

enum Event {
    /// An input of this machine that may be refused. Its outcome is sent once it is stored.
    Asked(Input, Vec<Row>, oneshot::Sender<Result<(), Refused>>),
    Linked {
        link: LinkId,
        node: NodeId,
        incarnation: Incarnation,
        outbox: Outbox,
    },
    Unlinked(LinkId),
    Message(LinkId, Bytes),
    /// This machine is no longer a member.
    Forget(oneshot::Sender<()>),
    /// Which of these objects are known to have been deleted.
    WhichDeleted(Vec<Key>, oneshot::Sender<Vec<Key>>),
}

/// Sends events to the task that drives the replica.
#[derive(Clone)]
pub(crate) struct Driver {
    events: mpsc::Sender<Event>,
}

impl Driver {
    /// Starts the replica with what is stored. Its objects are in the directory when this returns.
    pub(crate) async fn start(
        config: Config,
        incarnation: Incarnation,
        facts: Facts,
        directory: Arc<Directory>,
        notices: Notices,
    ) -> Result<Self, FactsError> {
        let loading = facts.clone();
        let stored = task::spawn_blocking(move || loading.load()).await;
        let stored = stored.map_err(|_| FactsError::Unreadable)??;
        let (now, wall) = times();
        let replica = Replica::new(config, rand::random(), incarnation, stored, now, wall);
        for (key, entry) in replica.entries() {
            directory.change(key, Some(entry));
        }
        let (events, waiting) = mpsc::channel(WAITING);
        let links = BTreeMap::new();
        let running = Running {
            replica,
            facts,
            directory,
            notices,
            links,
            forgetting: None,
            unkept: Vec::new(),
            rows: Vec::new(),
            token: 0,
        };
        tokio::spawn(running.run(waiting));
        Ok(Self { events })
    }

    /// Writes an object. It is stored when this returns.
    pub(crate) async fn write(
        &self,
        key: Key,
        owner: NodeId,
        value: Arc<str>,
        change: Change,
    ) -> Result<(), WriteError> {
        self.ask(Input::Write { key, owner, value, change }).await
    }

    /// Deletes an object. It is stored when this returns.
    pub(crate) async fn delete(&self, key: Key) -> Result<(), WriteError> {
        self.ask(Input::Delete { key }).await
    }

    /// Carries out any input that may be refused.
    pub(crate) async fn ask(&self, input: Input) -> Result<(), WriteError> {
        self.ask_with(input, Vec::new()).await
    }

    /// As [`Driver::ask`], with other facts that are stored in the same transaction. If the input
    /// is refused, they are not stored.
    pub(crate) async fn ask_with(&self, input: Input, rows: Vec<Row>) -> Result<(), WriteError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.events.send(Event::Asked(input, rows, answer)).await;
        sent.map_err(|_| WriteError::Stopping)?;
        Ok(answered.await.map_err(|_| WriteError::Stopping)??)
    }

    /// Carries out inputs that may be refused. Those that arrive together are stored together.
    pub(crate) async fn ask_all(
        &self,
        inputs: Vec<Input>,
    ) -> Result<Vec<Result<(), Refused>>, WriteError> {
        let mut waiting = Vec::with_capacity(inputs.len());
        for input in inputs {
            let (answer, answered) = oneshot::channel();
            let sent = self.events.send(Event::Asked(input, Vec::new(), answer)).await;
            sent.map_err(|_| WriteError::Stopping)?;
            waiting.push(answered);
        }
        let mut outcomes = Vec::with_capacity(waiting.len());
        for answered in waiting {
            outcomes.push(answered.await.map_err(|_| WriteError::Stopping)?);
        }
        Ok(outcomes)
    }

    /// Those of the objects that are known to have been deleted.
    pub(crate) async fn which_deleted(&self, keys: Vec<Key>) -> Result<Vec<Key>, WriteError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.events.send(Event::WhichDeleted(keys, answer)).await;
        sent.map_err(|_| WriteError::Stopping)?;
        answered.await.map_err(|_| WriteError::Stopping)
    }

    /// Ends the replica, and forgets everything that the cluster has stored here.
    pub(crate) async fn forget(&self) -> Result<(), WriteError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.events.send(Event::Forget(answer)).await;
        sent.map_err(|_| WriteError::Stopping)?;
        answered.await.map_err(|_| WriteError::Stopping)
    }

    pub(crate) async fn linked(
        &self,
        link: LinkId,
        node: NodeId,
        incarnation: Incarnation,
        outbox: Outbox,
    ) {
        let _stopping = self.events.send(Event::Linked { link, node, incarnation, outbox }).await;
    }

    pub(crate) async fn unlinked(&self, link: LinkId) {
        let _stopping = self.events.send(Event::Unlinked(link)).await;
    }

    /// Passes on a message of a member. If too many events wait it is dropped, and its content is
    /// pulled later.
    pub(crate) fn message(&self, link: LinkId, bytes: Bytes) {
        let _full_or_stopping = self.events.try_send(Event::Message(link, bytes));
    }
}

struct Running {
    replica: Replica,
    facts: Facts,
    directory: Arc<Directory>,
    notices: Notices,
    links: BTreeMap<LinkId, Outbox>,
    /// Set when everything stored is to be forgotten.
    forgetting: Option<oneshot::Sender<()>>,
    /// Facts that are not stored yet, and the token of the last of them.
    unkept: Vec<Fact>,
    /// Other facts that are stored with them.
    rows: Vec<Row>,
    token: u64,
}

type Outcome = (oneshot::Sender<Result<(), Refused>>, Result<(), Refused>);

impl Running {
    async fn run(mut self, mut waiting: mpsc::Receiver<Event>) {
        let mut events = Vec::new();
        loop {
            let due = self.replica.poll_timeout().map(|(at, _)| at);
            let count = tokio::select! {
                count = waiting.recv_many(&mut events, TOGETHER) => count,
                () = until(due) => {
                    let (now, wall) = times();
                    self.replica.handle_timeout(now, wall);
                    self.drain();
                    self.keep().await;
                    continue;
                }
            };
            if count == 0 {
                return;
            }
            let mut outcomes = Vec::new();
            for event in events.drain(..) {
                outcomes.extend(self.event(event));
                self.drain();
            }
            self.keep().await;
            for (answer, outcome) in outcomes {
                let _gave_up = answer.send(outcome);
            }
            if let Some(answer) = self.forgetting.take() {
                self.forget().await;
                let _gave_up = answer.send(());
                return;
            }
        }
    }

    fn event(&mut self, event: Event) -> Option<Outcome> {
        let (input, answer) = match event {
            Event::Asked(input, rows, answer) => (input, Some((rows, answer))),
            Event::Linked { link, node, incarnation, outbox } => {
                self.links.insert(link, outbox);
                (Input::LinkUp { link, node, incarnation }, None)
            }
            Event::Unlinked(link) => {
                self.links.remove(&link);
                (Input::LinkDown { link }, None)
            }
            Event::Forget(answer) => {
                self.forgetting = Some(answer);
                return None;
            }
            Event::WhichDeleted(mut keys, answer) => {
                keys.retain(|key| self.replica.is_deleted(key));
                let _gave_up = answer.send(keys);
                return None;
            }
            Event::Message(link, bytes) => match Message::decode(&bytes) {
                Ok(message) => (Input::Message { link, message }, None),
                Err(error) => {
                    tracing::warn!(%error, "a member's message of the replica cannot be read");
                    return None;
                }
            },
        };
        let (now, wall) = times();
        let outcome = self.replica.handle(now, wall, input);
        let (rows, answer) = answer?;
        if outcome.is_ok() {
            self.rows.extend(rows);
        }
        Some((answer, outcome))
    }

    /// Forgets what is stored, trying again until the store succeeds, and clears the directory.
    async fn forget(&self) {
        loop {
            let facts = self.facts.clone();
            match task::spawn_blocking(move || facts.forget()).await {
                Ok(Ok(())) => break,
                Ok(Err(error)) => {
                    let error = base::error::chain(&error);
                    tracing::error!(error, "the cluster cannot be forgotten; tried again");
                }
                Err(error) => tracing::error!(%error, "the cluster cannot be forgotten"),
            }
            sleep(AGAIN).await;
        }
        self.directory.clear();
    }

    fn drain(&mut self) {
        while let Some(output) = self.replica.poll_output() {
            match output {
                Output::Keep { token, facts } => {
                    self.token = token;
                    self.unkept.extend(facts);
                }
                Output::Send { link, message } => self.send(link, &message),
                Output::Changed { key, entry } => self.directory.change(&key, entry.as_ref()),
                Output::Notice(notice) => self.notices.tell(&notice),
            }
        }
    }

    fn send(&self, link: LinkId, message: &Message) {
        if let Some(outbox) = self.links.get(&link) {
            let frame = LinkFrame::Replica(message.encode().into());
            let _link_ended = outbox.push(frame.encode());
        }
    }

    /// Stores what has gathered, trying again until the store succeeds. Then sends the messages
    /// that waited for it.
    async fn keep(&mut self) {
        while !self.unkept.is_empty() || !self.rows.is_empty() {
            let batch = (std::mem::take(&mut self.unkept), std::mem::take(&mut self.rows));
            let batch = Arc::new(batch);
            let token = self.token;
            while !self.try_keep(&batch).await {
                sleep(AGAIN).await;
            }
            let (now, wall) = times();
            // Only writes can be refused.
            let _never_refused = self.replica.handle(now, wall, Input::Kept { token });
            self.drain();
        }
    }

    async fn try_keep(&self, batch: &Arc<(Vec<Fact>, Vec<Row>)>) -> bool {
        let (facts, batch) = (self.facts.clone(), Arc::clone(batch));
        match task::spawn_blocking(move || facts.keep(&batch.0, &batch.1)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                let error = base::error::chain(&error);
                tracing::error!(error, "the cluster's objects cannot be stored; tried again");
                false
            }
            Err(error) => {
                tracing::error!(%error, "the cluster's objects cannot be stored; tried again");
                false
            }
        }
    }
}

/// The monotonic clock, and the wall clock since 1970.
fn times() -> (Instant, Duration) {
    (tokio::time::Instant::now().into_std(), base::since_1970(SystemTime::now()))
}
