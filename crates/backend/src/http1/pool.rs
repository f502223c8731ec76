//! Connections that are kept for a while.

use std::{
    io::ErrorKind,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::{
    net::TcpStream,
    runtime::Handle,
    time::{Instant, sleep_until},
};

use crate::client::{KEEP_IDLE, MAX_IDLE};

/// The unused connections to one backend.
#[derive(Debug)]
pub(super) struct Pool {
    most: usize,
    idle: Mutex<Idle>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { most: MAX_IDLE, idle: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct Idle {
    /// The connections, each with the time until which it is kept; the one with the latest time is
    /// last.
    connections: Vec<(TcpStream, Instant)>,
    /// Whether a task runs that closes them when their time is over.
    is_swept: bool,
}

impl Pool {
    /// Takes the connection that was used last and is still silent. Drops those that are not.
    pub(super) fn take(&self) -> Option<TcpStream> {
        loop {
            let (stream, _) = self.idle().connections.pop()?;
            if is_silent(&stream) {
                return Some(stream);
            }
        }
    }

    /// Keeps a connection, unless there are too many.
    pub(super) fn put(self: &Arc<Self>, stream: TcpStream) {
        let mut idle = self.idle();
        if idle.connections.len() >= self.most {
            return;
        }
        idle.connections.push((stream, Instant::now() + KEEP_IDLE));
        if !idle.is_swept
            && let Ok(runtime) = Handle::try_current()
        {
            idle.is_swept = true;
            drop(runtime.spawn(sweep(Arc::downgrade(self))));
        }
    }

    /// Closes the connections whose time is over. Returns when the time of the next one is over;
    /// `None` if none is left.
    fn expire(&self) -> Option<Instant> {
        let (mut idle, now) = (self.idle(), Instant::now());
        let over = idle.connections.partition_point(|(_, until)| *until <= now);
        idle.connections.drain(..over);
        let next = idle.connections.first().map(|(_, until)| *until);
        idle.is_swept = next.is_some();
        next
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sweep(pool: Weak<Pool>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.expire()) {
        sleep_until(next).await;
    }
}

/// Whether a connection is silent: neither its end has come, nor bytes that no request asked for.
fn is_silent(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt, net::TcpListener};

    use super::*;

    #[tokio::test]
    async fn no_more_connections_are_kept_than_the_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let pool = Arc::new(Pool { most: 2, ..Pool::default() });
        let mut far = Vec::new();
        for _ in 0..3 {
            let (near, accepted) = tokio::join!(TcpStream::connect(to), listener.accept());
            pool.put(near.unwrap());
            far.push(accepted.unwrap().0);
        }
        assert_eq!(far[2].read(&mut [0]).await.unwrap(), 0, "the third is closed");
        let newest = pool.take().unwrap();
        assert_eq!(newest.local_addr().unwrap(), far[1].peer_addr().unwrap());
        assert!(pool.take().is_some() && pool.take().is_none());
    }
}
