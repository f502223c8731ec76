//! Makes connections. While that fails, the pauses between two tries grow.

use std::{future::poll_fn, sync::Arc, time::Duration};

use base::{Backoff, error::chain};
use tokio::{
    task::spawn_local,
    time::{Instant, timeout},
};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};

use super::{
    bell::Bell,
    failure::Failure,
    schema,
    tls::{Stream, Tls},
};

/// The pauses between two tries while the database cannot be reached.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));

/// Prepares each connection before it is used. A statement or transaction that nobody waits for any more ends after
/// its timeout. Every connection hears the changes by other servers.
const PREPARE: &str = "SET search_path TO warren; SET statement_timeout = '30s'; SET lock_timeout = '4s';
    SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = 'warning'; LISTEN warren";

/// How long the database may take to accept a connection, and how long it may take to bring its tables up to date.
const LET_IN: Duration = Duration::from_secs(4);
const UP_TO_DATE: Duration = Duration::from_secs(600);

/// Makes connections, one after the other.
pub(super) struct Connector {
    config: Config,
    bell: Arc<Bell>,
    pauses: Backoff,
    /// Until when no connection is tried, and why the last try failed.
    resting: Option<(Instant, String)>,
}

impl Connector {
    pub(super) fn new(config: Config, bell: Arc<Bell>) -> Self {
        Self { config, bell, pauses: PAUSES, resting: None }
    }

    /// A connection with tables that are up to date.
    pub(super) async fn connect(&mut self) -> Result<Client, Failure> {
        if let Some((_, why)) = self.resting.as_ref().filter(|(until, _)| Instant::now() < *until) {
            return Err(Failure::Away(why.clone()));
        }
        let connected = self.try_it().await;
        self.tried(connected.as_ref().err());
        connected
    }

    async fn try_it(&self) -> Result<Client, Failure> {
        let late = |_| Failure::late(LET_IN);
        let connected = timeout(LET_IN, self.config.connect(Tls)).await.map_err(late)?;
        // Always `Away`, so that it is tried again: whatever is wrong may be put right while this server runs.
        let (mut client, connection) = connected.map_err(|error| Failure::Away(chain(&error)))?;
        spawn_local(drive(connection, Arc::clone(&self.bell)));
        let late = |_| Failure::late(UP_TO_DATE);
        timeout(UP_TO_DATE, schema::bring_up_to_date(&mut client)).await.map_err(late)??;
        client.batch_execute(PREPARE).await?;
        Ok(client)
    }

    fn tried(&mut self, failed: Option<&Failure>) {
        match failed {
            Some(Failure::Away(why)) => {
                let pause = self.pauses.next(rand::random());
                self.resting = Some((Instant::now() + pause, why.clone()));
            }
            Some(Failure::Refused(_) | Failure::Newer { .. }) | None => {
                self.pauses.reset();
                self.resting = None;
            }
        }
    }
}

/// Moves bytes until the connection ends, and rings when another server has changed something.
async fn drive(mut connection: Connection<Socket, Stream<Socket>>, bell: Arc<Bell>) {
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(said) = message {
            bell.hear(said.payload());
        }
    }
    // While there is no connection, changes are not heard. So a caller that waits for one has to look.
    bell.ring();
}
