//! A proxy to a server that cuts each connection after a number of the server's bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::TcpStream,
    sync::watch,
};

use crate::{
    random::Random,
    sockets::{Task, accept, any_port, listen},
};

/// A proxy. Dropping it cuts every connection.
#[derive(Debug)]
pub struct Cutter {
    address: SocketAddr,
    state: Arc<CutterState>,
    _task: Task,
}

#[derive(Debug)]
struct CutterState {
    target: Mutex<SocketAddr>,
    random: Mutex<Random>,
    /// No connection carries more of the server's bytes.
    most: u64,
    is_calm: AtomicBool,
    cuts: AtomicU64,
    /// Changes when all connections have to be cut.
    now: watch::Sender<()>,
}

impl Cutter {
    /// To this server. Each connection is cut at a byte of the server's that the seed chooses, at the
    /// latest after `most`.
    pub async fn to(target: SocketAddr, seed: u64, most: u64) -> Self {
        let (listener, address) = listen(any_port()).await;
        let state = Arc::new(CutterState {
            target: Mutex::new(target),
            random: Mutex::new(Random::new(seed)),
            most,
            is_calm: AtomicBool::new(false),
            cuts: AtomicU64::new(0),
            now: watch::Sender::new(()),
        });
        let own = Arc::clone(&state);
        let task = accept(listener, move |near| connection(near, Arc::clone(&own)));
        Self { address, state, _task: task }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }

    pub fn lead_to(&self, target: SocketAddr) {
        *self.state.target.lock().unwrap() = target;
    }

    /// A proxy that cuts connections only on [`Cutter::cut`].
    pub async fn calm(target: SocketAddr) -> Self {
        let cutter = Self::to(target, 0, 1).await;
        cutter.calm_down();
        cutter
    }

    pub fn cut(&self) {
        self.state.now.send_replace(());
    }

    /// Cuts no connection any more that begins from now on.
    pub fn calm_down(&self) {
        self.state.is_calm.store(true, Ordering::SeqCst);
    }
}

async fn connection(near: TcpStream, state: Arc<CutterState>) {
    let target = *state.target.lock().unwrap();
    let Ok(far) = TcpStream::connect(target).await else { return };
    let (mut now, (bytes, is_rude)) = (state.now.subscribe(), state.draw());
    if is_rude {
        // A reset at both ends, which also loses what is on its way.
        let _unset = (far.set_zero_linger(), near.set_zero_linger());
    }
    let _unset = (far.set_nodelay(true), near.set_nodelay(true));
    let (mut near_read, mut near_write) = near.into_split();
    let (far_read, mut far_write) = far.into_split();
    tokio::select! {
        _ = now.changed() => {
            state.cuts.fetch_add(1, Ordering::SeqCst);
        }
        _ = copy(&mut near_read, &mut far_write) => {}
        sent = async { copy(&mut far_read.take(bytes), &mut near_write).await } => {
            if sent.is_ok_and(|sent| sent == bytes) {
                state.cuts.fetch_add(1, Ordering::SeqCst);
            }
            let _gone = near_write.flush().await;
        }
    }
}

impl CutterState {
    /// After how many bytes a connection is cut, and whether without a word.
    fn draw(&self) -> (u64, bool) {
        let mut random = self.random.lock().unwrap();
        let (bytes, is_rude) = (1 + random.below(self.most), random.chance(0.5));
        if self.is_calm.load(Ordering::SeqCst) { (u64::MAX, false) } else { (bytes, is_rude) }
    }
}
