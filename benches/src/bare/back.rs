//! The half that asks the backend. A task for each connection to it, which lives as long as the connection,
//! passes answers on.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Result, bail};
use bytes::BytesMut;
use tokio::{
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::AbortHandle,
};

use super::{
    link::{self, Frame, Inbox, Kind, Outbox},
    message::Rest,
};
use crate::child;

/// Serves until stdin ends.
pub(crate) async fn run(front: SocketAddr, backend: SocketAddr) -> Result<()> {
    tokio::select! {
        outcome = serve(front, backend) => outcome,
        () = child::abandoned() => Ok(()),
    }
}

/// Serves until the link breaks.
pub(super) async fn serve(front: SocketAddr, backend: SocketAddr) -> Result<()> {
    let (inbox, writer) = link::split(TcpStream::connect(front).await?)?;
    let pool = Arc::new(Pool { backend, desk: Mutex::default(), outbox: Outbox::default() });
    tokio::select! {
        outcome = ask(inbox, &pool) => outcome,
        outcome = pool.outbox.write_to(writer) => Ok(outcome?),
    }
}

struct Pool {
    backend: SocketAddr,
    desk: Mutex<Desk>,
    outbox: Outbox,
}

#[derive(Default)]
struct Desk {
    /// The connections with a request, by the numbers of the clients.
    busy: HashMap<u32, Arc<Connection>>,
    idle: Vec<Arc<Connection>>,
}

/// A connection to the backend.
struct Connection {
    socket: OwnedWriteHalf,
    /// Whose request it has.
    client: Mutex<Option<u32>>,
    /// Ends the task that reads its answers.
    task: Mutex<Option<AbortHandle>>,
}

async fn ask(mut inbox: Inbox, pool: &Arc<Pool>) -> Result<()> {
    loop {
        let frame = inbox.next().await?;
        if frame.kind == Kind::Broken {
            pool.hang_up(frame.id);
        } else if pool.pass(&frame).await.is_err() {
            pool.hang_up(frame.id);
            pool.outbox.send(frame.id, Kind::Broken, &[]).await;
        }
    }
}

impl Pool {
    async fn pass(self: &Arc<Self>, frame: &Frame) -> Result<()> {
        let known = self.lock().connection_of(frame.id);
        let connection = match known {
            Some(connection) => connection,
            None => self.dial(frame.id).await?,
        };
        Ok(link::write(&connection.socket, &frame.payload).await?)
    }

    async fn dial(self: &Arc<Self>, client: u32) -> Result<Arc<Connection>> {
        let socket = TcpStream::connect(self.backend).await?;
        socket.set_nodelay(true)?;
        let (reader, socket) = socket.into_split();
        let connection = Arc::new(Connection {
            socket,
            client: Mutex::new(Some(client)),
            task: Mutex::default(),
        });
        let task = tokio::spawn(answers(reader, connection.clone(), self.clone()));
        *lock(&connection.task) = Some(task.abort_handle());
        self.lock().busy.insert(client, connection.clone());
        Ok(connection)
    }

    /// Closes the connection that has this client's request, if one has.
    fn hang_up(&self, client: u32) {
        let connection = self.lock().busy.remove(&client);
        if let Some(task) = connection.and_then(|connection| lock(&connection.task).take()) {
            task.abort();
        }
    }

    /// Takes a connection whose client is answered back.
    fn rest(&self, client: u32, connection: &Arc<Connection>) {
        *lock(&connection.client) = None;
        let mut desk = self.lock();
        desk.busy.remove(&client);
        desk.idle.push(connection.clone());
    }

    /// Forgets a connection that is closed; whose request it had.
    fn forget(&self, connection: &Arc<Connection>) -> Option<u32> {
        let client = lock(&connection.client).take();
        let mut desk = self.lock();
        desk.idle.retain(|idle| !Arc::ptr_eq(idle, connection));
        if let Some(client) = client {
            desk.busy.remove(&client);
        }
        client
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }
}

impl Desk {
    /// The connection that has this client's request, or one that is idle.
    fn connection_of(&mut self, client: u32) -> Option<Arc<Connection>> {
        if let Some(connection) = self.busy.get(&client) {
            return Some(connection.clone());
        }
        let connection = self.idle.pop()?;
        *lock(&connection.client) = Some(client);
        self.busy.insert(client, connection.clone());
        Some(connection)
    }
}

/// Passes the answers of one connection on, until it is closed.
async fn answers(mut socket: OwnedReadHalf, connection: Arc<Connection>, pool: Arc<Pool>) {
    let mut buffer = BytesMut::new();
    while answer(&mut socket, &mut buffer, &connection, &pool).await.is_ok() {}
    if let Some(client) = pool.forget(&connection) {
        pool.outbox.send(client, Kind::Broken, &[]).await;
    }
}

async fn answer(
    socket: &mut OwnedReadHalf,
    buffer: &mut BytesMut,
    connection: &Arc<Connection>,
    pool: &Pool,
) -> Result<()> {
    let (head, mut rest) = loop {
        link::read(socket, buffer).await?;
        if let Some(head) = Rest::of_answer(buffer)? {
            break head;
        }
    };
    let Some(client) = *lock(&connection.client) else { bail!("an answer that nobody asked for") };
    let mut taken = head + rest.take(&buffer[head..])?;
    while !rest.is_over() {
        pool.outbox.send(client, Kind::More, &buffer.split_to(taken)).await;
        link::read(socket, buffer).await?;
        taken = rest.take(buffer)?;
    }
    // Idle before the client hears of its end, and sends the next request.
    pool.rest(client, connection);
    pool.outbox.send(client, Kind::Last, &buffer.split_to(taken)).await;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
