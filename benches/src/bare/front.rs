//! The half that clients talk to. What one sends goes into the link; what comes for it is written to
//! its socket at once, by the task that reads the link.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use bytes::BytesMut;
use tokio::{
    net::{
        TcpListener,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    task::AbortHandle,
};

use super::{
    link::{self, Inbox, Kind, Outbox},
    message::Rest,
};
use crate::child;

/// Serves until stdin ends. Prints the address of its link, and as a second line that of its clients.
pub(crate) async fn run() -> Result<()> {
    let front = Front::bind().await?;
    child::say(&front.link.to_string())?;
    child::announce(front.clients)?;
    tokio::select! {
        outcome = front.serve() => outcome,
        () = child::abandoned() => Ok(()),
    }
}

pub(super) struct Front {
    pub(super) clients: SocketAddr,
    pub(super) link: SocketAddr,
    listeners: [TcpListener; 2],
}

impl Front {
    pub(super) async fn bind() -> Result<Self> {
        let clients = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let link = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let (at, linked_at) = (clients.local_addr()?, link.local_addr()?);
        Ok(Self { clients: at, link: linked_at, listeners: [clients, link] })
    }

    /// Serves until the link breaks.
    pub(super) async fn serve(self) -> Result<()> {
        let [clients, link] = self.listeners;
        let (inbox, writer) = link::split(link.accept().await?.0)?;
        let (desk, outbox) = (Arc::<Desk>::default(), Arc::<Outbox>::default());
        tokio::select! {
            outcome = accept(clients, &desk, &outbox) => outcome,
            outcome = answer(inbox, &desk) => outcome,
            outcome = outbox.write_to(writer) => Ok(outcome?),
        }
    }
}

/// The clients that are there, by the numbers of their connections, and what ends their tasks.
type Desk = Mutex<HashMap<u32, (Arc<Client>, AbortHandle)>>;

struct Client {
    socket: OwnedWriteHalf,
    /// Whether its request is not answered yet.
    waits: AtomicBool,
    answered: Notify,
}

async fn accept(clients: TcpListener, desk: &Arc<Desk>, outbox: &Arc<Outbox>) -> Result<()> {
    for id in 0.. {
        let (socket, _) = clients.accept().await?;
        socket.set_nodelay(true)?;
        let (reader, socket) = socket.into_split();
        let client = Client { socket, waits: AtomicBool::new(false), answered: Notify::new() };
        let client = Arc::new(client);
        let task = tokio::spawn(serve(reader, id, client.clone(), desk.clone(), outbox.clone()));
        lock(desk).insert(id, (client, task.abort_handle()));
    }
    Ok(())
}

async fn serve(
    mut socket: OwnedReadHalf,
    id: u32,
    client: Arc<Client>,
    desk: Arc<Desk>,
    outbox: Arc<Outbox>,
) {
    let mut buffer = BytesMut::new();
    // An error is a client that left, or one that says what this pair does not know.
    while ask(&mut socket, &mut buffer, id, &client, &outbox).await.is_ok() {}
    lock(&desk).remove(&id);
    outbox.send(id, Kind::Broken, &[]).await;
}

/// Passes one request on; the next one must wait for its answer.
async fn ask(
    socket: &mut OwnedReadHalf,
    buffer: &mut BytesMut,
    id: u32,
    client: &Client,
    outbox: &Outbox,
) -> Result<()> {
    let (head, mut rest) = loop {
        if let Some(head) = Rest::of_request(buffer)? {
            break head;
        }
        link::read(socket, buffer).await?;
    };
    while client.waits.load(Ordering::Relaxed) {
        client.answered.notified().await;
    }
    client.waits.store(true, Ordering::Relaxed);
    let mut taken = head + rest.take(&buffer[head..])?;
    loop {
        let kind = if rest.is_over() { Kind::Last } else { Kind::More };
        outbox.send(id, kind, &buffer.split_to(taken)).await;
        if rest.is_over() {
            return Ok(());
        }
        link::read(socket, buffer).await?;
        taken = rest.take(buffer)?;
    }
}

/// Writes what comes over the link to the clients.
async fn answer(mut inbox: Inbox, desk: &Desk) -> Result<()> {
    loop {
        let frame = inbox.next().await?;
        let Some((client, task)) = lock(desk).get(&frame.id).cloned() else { continue };
        // A client that is gone shows at its reading end, too.
        let _ = link::write(&client.socket, &frame.payload).await;
        match frame.kind {
            Kind::More => {}
            Kind::Last => client.answered(),
            Kind::Broken => {
                lock(desk).remove(&frame.id);
                task.abort();
            }
        }
    }
}

impl Client {
    fn answered(&self) {
        self.waits.store(false, Ordering::Relaxed);
        self.answered.notify_one();
    }
}

fn lock(desk: &Desk) -> MutexGuard<'_, HashMap<u32, (Arc<Client>, AbortHandle)>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}
