//! The ways between the members of a cluster: proxies whose connections can be cut, and which count the
//! bytes that they carry.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::stats::now;

const CHUNK: usize = 16 << 10;

/// One way from each member to each other one.
#[derive(Debug)]
pub(crate) struct Ways(BTreeMap<(usize, usize), Way>);

#[derive(Debug)]
struct Way {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    is_cut: watch::Sender<bool>,
    bytes: AtomicU64,
    /// When the first byte of the newest connection came back from its target, in microseconds since
    /// 1970; 0 before that.
    answered: AtomicU64,
}

impl Ways {
    /// Between members that listen at these addresses.
    pub(crate) async fn between(members: &[SocketAddr]) -> Result<Self> {
        let mut ways = BTreeMap::new();
        for from in 0..members.len() {
            for (to, target) in members.iter().enumerate().filter(|(to, _)| *to != from) {
                ways.insert((from, to), Way::new(*target).await?);
            }
        }
        Ok(Self(ways))
    }

    /// The addresses that a member dials.
    pub(crate) fn of(&self, member: usize) -> impl Iterator<Item = String> {
        let own = self.0.iter().filter(move |((from, _), _)| *from == member);
        own.map(|(_, way)| way.address.to_string())
    }

    /// Cuts the ways between the members for which it is so, and heals all others.
    pub(crate) fn cut(&self, is_cut: impl Fn(usize, usize) -> bool) {
        for ((from, to), way) in &self.0 {
            let cut = is_cut(*from, *to) || is_cut(*to, *from);
            if way.state.is_cut.send_replace(cut) && !cut {
                way.state.answered.store(0, Ordering::SeqCst);
            }
        }
    }

    /// The bytes that were carried between two members, in both directions, over all connections.
    pub(crate) fn carried(&self, one: usize, other: usize) -> u64 {
        let both = [(one, other), (other, one)];
        both.iter()
            .filter_map(|way| self.0.get(way))
            .map(|way| way.state.bytes.load(Ordering::SeqCst))
            .sum()
    }

    /// When one of the ways that were healed last was answered first, in microseconds since 1970.
    pub(crate) fn answered(&self, was_cut: impl Fn(usize, usize) -> bool) -> Option<u64> {
        let healed =
            self.0.iter().filter(|((from, to), _)| was_cut(*from, *to) || was_cut(*to, *from));
        let answered = healed.map(|(_, way)| way.state.answered.load(Ordering::SeqCst));
        answered.filter(|at| *at > 0).min()
    }
}

impl Way {
    async fn new(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port")?;
        let address = listener.local_addr()?;
        let (is_cut, _) = watch::channel(false);
        let (bytes, answered) = Default::default();
        let state = Arc::new(State { target, is_cut, bytes, answered });
        let own = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(connection(near, Arc::clone(&own)));
            }
        });
        Ok(Self { address, state })
    }
}

async fn connection(near: TcpStream, state: Arc<State>) {
    let mut cut = state.is_cut.subscribe();
    if *cut.borrow() {
        return;
    }
    let Ok(far) = TcpStream::connect(state.target).await else { return };
    let _unset = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    tokio::select! {
        _ = cut.wait_for(|cut| *cut) => {}
        _ = carry(near_read, far_write, &state, false) => {}
        _ = carry(far_read, near_write, &state, true) => {}
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    is_answer: bool,
) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        state.bytes.fetch_add(count as u64, Ordering::SeqCst);
        if is_answer {
            let none = state.answered.load(Ordering::SeqCst) == 0;
            state.answered.fetch_add(if none { now() } else { 0 }, Ordering::SeqCst);
        }
        to.write_all(&bytes[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_way_carries_and_counts_until_it_is_cut() {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = echo.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = echo.accept().await {
                let (mut read, mut write) = stream.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut read, &mut write).await });
            }
        });
        let ways = Ways::between(&[target, target]).await.unwrap();
        let address = ways.of(0).next().unwrap();
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer, ways.carried(1, 0)), (b"ping", 8));
        assert!(ways.answered(|_, _| true).is_some_and(|at| at <= now()));
        ways.cut(|_, _| true);
        assert!(matches!(stream.read(&mut answer).await, Ok(0) | Err(_)));
        ways.cut(|_, _| false);
        assert_eq!(ways.answered(|_, _| true), None, "no healed way is answered yet");
        let mut again = TcpStream::connect(&address).await.unwrap();
        again.write_all(b"ping").await.unwrap();
        again.read_exact(&mut answer).await.unwrap();
        assert_eq!(ways.carried(0, 1), 16);
    }
}
