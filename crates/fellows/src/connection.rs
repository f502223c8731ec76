//! The connection to NATS, and the bucket in which each server has its record.
//!
//! Once NATS was reached, its client connects again by itself. Each time that it stands, a *session* begins: the
//! bucket is made if it is not there (it is in NATS's memory), its records are read and watched, and the own record
//! is put whenever it is due. A session ends with its connection, or when NATS fails to answer.

use std::{sync::Arc, time::Duration};

use async_nats::{
    Client, ConnectOptions, Event, Subscriber,
    jetstream::{
        self,
        kv::{Config, Operation, Store, Watch},
        stream::StorageType,
    },
};
use fleet::{Record, ServerId, members};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    address::{Credentials, NatsAddress},
    facts::{EncodedFacts, MAX_RECORD},
    membership::Heard,
    node::Node,
    record::{self, Records},
    sealing::{GroupKey, NotOpened, OVERHEAD, Opener},
    shared::SharedRecords,
};

/// How soon it is tried again after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// How long NATS may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often NATS is asked whether it is there. Two questions without an answer end the connection.
const PING: Duration = Duration::from_secs(1);

/// A record whose server has not written another for this long goes.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The events of the connection that may wait. Its client waits with further ones.
const MOST_EVENTS: usize = 64;

/// The messages that may wait for this server's task. What comes on top is lost, and sent again.
const MOST_WAITING: usize = 16 * 1024;

/// The oldest NATS that has what is used here.
const OLDEST: (u64, u64) = (2, 10);

/// Keeps the connection.
pub(crate) struct Connection {
    pub(crate) address: NatsAddress,
    pub(crate) group: GroupKey,
    pub(crate) node: Arc<Node>,
    pub(crate) records: SharedRecords,
    /// Hears of the records.
    pub(crate) heard: mpsc::Sender<Heard>,
    /// The newest own record.
    pub(crate) own: watch::Receiver<Option<Record<Arc<EncodedFacts>>>>,
}

/// Why NATS is not used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it is not reached: {0}")]
    Away(String),
    #[error("the connection was lost")]
    Lost,
    #[error("it is version {0}, and 2.10 or newer is needed: upgrade the NATS server")]
    Old(String),
    #[error(
        "it has no JetStream: start the NATS server with -js, or turn JetStream on for this account"
    )]
    NoJetStream,
    #[error("the bucket {bucket} cannot be used: {why}")]
    Bucket { bucket: String, why: String },
    #[error("it does not answer: {0}")]
    Silent(String),
}

impl Connection {
    /// Keeps the connection until `stop`. Then the own record is taken out.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let (events, mut happened) = mpsc::channel(MOST_EVENTS);
        let first = tokio::select! {
            () = stop.cancelled() => return,
            client = self.first(&events) => client,
        };
        self.node.transport.set_carrier(Box::new(first.clone()));
        let subject = self.node.transport.subject(self.node.id);
        let inbox = match first.subscribe(subject.clone()).await {
            Ok(inbox) => inbox,
            Err(error) => return tracing::error!(%error, "NATS takes no subscription"),
        };
        let (node, opener) = (Arc::clone(&self.node), Opener::new(self.group.clone()));
        let receiving = tokio::spawn(receive(node, opener, subject, inbox));
        self.sessions(&first, &mut happened, &stop).await;
        receiving.abort();
    }

    /// One session after the other.
    async fn sessions(
        &mut self,
        client: &Client,
        happened: &mut mpsc::Receiver<Event>,
        stop: &CancellationToken,
    ) {
        let mut opener = Opener::new(self.group.clone());
        loop {
            while happened.try_recv().is_ok() {}
            let ended = if client.connection_state() == async_nats::connection::State::Connected {
                self.session(client, happened, &mut opener, stop).await
            } else {
                Err(Unusable::Lost)
            };
            self.node.transport.set_up(false);
            self.records.lost().await;
            // Nobody listens only when this server stops.
            let _stopping = self.heard.send(members::Input::Disconnected).await;
            let Err(why) = ended else { return };
            self.complain(&why);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
                () = connected(happened) => {}
            }
        }
    }

    /// From a standing connection to its end; `Ok` when this server stops.
    async fn session(
        &mut self,
        client: &Client,
        happened: &mut mpsc::Receiver<Event>,
        opener: &mut Opener,
        stop: &CancellationToken,
    ) -> Result<(), Unusable> {
        check(client)?;
        let bucket = self.bucket(client).await?;
        let mut watch = self.watch(&bucket).await?;
        let shared = self.records.open(client).await.map_err(Unusable::Silent)?;
        let mut following = std::pin::pin!(shared.run());
        self.node.trouble.set_nats(None);
        self.node.transport.set_up(true);
        tracing::info!(nats = %self.address.shown(), group = self.address.group(), "joined the group of servers");
        let _stopping = self.heard.send(members::Input::Connected).await;
        let mut records = Records::default();
        self.own.mark_changed();
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    let _late = tokio::time::timeout(PATIENCE, bucket.delete(self.node.id.to_string())).await;
                    let _late = tokio::time::timeout(PATIENCE, client.flush()).await;
                    return Ok(());
                }
                () = lost(happened) => return Err(Unusable::Lost),
                why = &mut following => return Err(Unusable::Silent(why)),
                entry = watch.next() => match entry {
                    Some(Ok(entry)) => {
                        self.seen(&mut records, opener, &entry.key, &entry.value, entry.operation).await;
                    }
                    Some(Err(error)) => return Err(Unusable::Silent(error.to_string())),
                    None => return Err(Unusable::Silent("the records are not watched any more".to_owned())),
                },
                changed = self.own.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let own = self.own.borrow_and_update().clone();
                    if let Some(own) = own {
                        self.put(&bucket, &own).await?;
                    }
                }
            }
        }
    }

    /// The first connection, however long it takes.
    async fn first(&self, events: &mpsc::Sender<Event>) -> Client {
        loop {
            let (options, servers) = (self.options(events.clone()), self.address.servers.clone());
            match options.connect(servers).await {
                Ok(client) => return client,
                Err(error) => self.complain(&Unusable::Away(base::error::chain(&error))),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn options(&self, events: mpsc::Sender<Event>) -> ConnectOptions {
        let options = ConnectOptions::new()
            .name(format!("warren {}", self.node.name))
            .connection_timeout(PATIENCE)
            .ping_interval(PING)
            .subscription_capacity(MOST_WAITING)
            .max_reconnects(None)
            .reconnect_delay_callback(|attempt| {
                RETRY.min(Duration::from_millis(100) * u32::try_from(attempt).unwrap_or(u32::MAX))
            })
            .event_callback(move |event| {
                let events = events.clone();
                async move {
                    let _stopping = events.send(event).await;
                }
            });
        signed_in(options, &self.address)
    }

    /// The bucket of the group. It is made where it is not there.
    async fn bucket(&self, client: &Client) -> Result<Store, Unusable> {
        let bucket = format!("warren_{}", self.address.group());
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PATIENCE);
        let config = Config {
            bucket: bucket.clone(),
            description: "Servers that act as one".to_owned(),
            history: 1,
            max_age: MAX_AGE,
            max_value_size: i32::try_from(MAX_RECORD + OVERHEAD).unwrap_or(i32::MAX),
            storage: StorageType::Memory,
            ..Config::default()
        };
        let made = context.create_or_update_key_value(config).await;
        made.map_err(|error| Unusable::Bucket { bucket, why: base::error::chain(&error) })
    }

    async fn watch(&self, bucket: &Store) -> Result<Watch, Unusable> {
        let watching = tokio::time::timeout(PATIENCE, bucket.watch_with_history(">")).await;
        let watching =
            watching.map_err(|_| Unusable::Silent("watching took too long".to_owned()))?;
        watching.map_err(|error| Unusable::Silent(base::error::chain(&error)))
    }

    /// Puts the own record.
    async fn put(&self, bucket: &Store, own: &Record<Arc<EncodedFacts>>) -> Result<(), Unusable> {
        let (head, facts) = record::encode(own);
        let key = own.id.to_string();
        let sealed = self.node.transport.sealer().seal(&key, &[&head, &facts]);
        let putting = tokio::time::timeout(PATIENCE, bucket.put(&key, sealed)).await;
        let put =
            putting.map_err(|_| Unusable::Silent("a record is not acknowledged".to_owned()))?;
        put.map(|_| ()).map_err(|error| Unusable::Silent(base::error::chain(&error)))
    }

    /// A record of some server, or its end.
    async fn seen(
        &self,
        records: &mut Records,
        opener: &mut Opener,
        key: &str,
        value: &bytes::Bytes,
        operation: Operation,
    ) {
        let Ok(id) = key.parse::<ServerId>() else { return };
        if id == self.node.id {
            return;
        }
        let heard = match operation {
            Operation::Delete | Operation::Purge => members::Input::Deleted(id),
            Operation::Put => match opener.open(key, value) {
                Ok((sender, record)) if sender == id => match records.decode(id, &record) {
                    Ok(record) => members::Input::Seen(record),
                    Err(error) => return tracing::warn!(%id, %error, "a record is ignored"),
                },
                // A record that was seen before comes again with each session.
                Ok(_) | Err(NotOpened::Again) => return,
                Err(why) => return self.node.trouble.stranger(why),
            },
        };
        let _stopping = self.heard.send(heard).await;
    }

    fn complain(&self, why: &Unusable) {
        let problem = format!(
            "NATS ({}): {why}. This server works alone, with its own workers, until it is back",
            self.address.shown()
        );
        if self.node.trouble.set_nats(Some(problem)) {
            tracing::warn!(nats = %self.address.shown(), %why, "this server works alone");
        }
    }
}

/// The same options, with TLS and credentials as the address has them.
pub(crate) fn signed_in(options: ConnectOptions, address: &NatsAddress) -> ConnectOptions {
    let options = options.require_tls(address.tls);
    match &address.credentials {
        Credentials::None => options,
        Credentials::Token(token) => options.token(token.expose().to_owned()),
        Credentials::Password { user, password } => {
            options.user_and_password(user.clone(), password.expose().to_owned())
        }
    }
}

/// Hands the messages of fellows on, for ever.
async fn receive(node: Arc<Node>, mut opener: Opener, subject: String, mut inbox: Subscriber) {
    while let Some(message) = inbox.next().await {
        node.arrived(&mut opener, &subject, &message.payload);
    }
}

async fn connected(happened: &mut mpsc::Receiver<Event>) {
    while let Some(event) = happened.recv().await {
        if event == Event::Connected {
            return;
        }
    }
    std::future::pending::<()>().await;
}

async fn lost(happened: &mut mpsc::Receiver<Event>) {
    while let Some(event) = happened.recv().await {
        match event {
            Event::Disconnected | Event::Closed => return,
            Event::SlowConsumer(_) => {
                tracing::warn!("messages of other servers were lost: this server is too slow");
            }
            Event::ServerError(error) => tracing::warn!(%error, "NATS reports an error"),
            Event::ClientError(error) => {
                tracing::debug!(%error, "the client of NATS reports an error");
            }
            _ => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Whether the NATS server has what is needed.
fn check(client: &Client) -> Result<(), Unusable> {
    let info = client.server_info();
    if !is_new_enough(&info.version) {
        return Err(Unusable::Old(info.version));
    }
    if info.jetstream { Ok(()) } else { Err(Unusable::NoJetStream) }
}

/// Whether this version of NATS has what is used here.
pub(crate) fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for good in ["2.10.0", "2.10.27", "2.15.1", "3.0.0", "2.11.0-RC.1"] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["2.9.10", "1.99.0", "2", "", "x.y"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }
}
