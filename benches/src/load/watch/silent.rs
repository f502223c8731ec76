//! Watchers that do not read. They are dropped in the end, are told why as soon as they read, and can
//! go on from the last event that they have seen.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use tokio::time::timeout;

use super::{
    marks::{Marks, nickname},
    stream::Stream,
};

/// How long reading what was kept may take.
const LIMIT: Duration = Duration::from_secs(20);

/// In the last frame for a watcher that was too slow.
const TOO_SLOW: &[u8] = b": you read too slowly";

/// In the first frame for a watcher that comes back too late.
const GONE: &[u8] = b": some events were missed";

/// How a body in chunks ends.
const END: &[u8] = b"\r\n0\r\n\r\n";

/// A watcher that has not read anything but the first event.
pub(super) struct Silent(Stream);

impl Silent {
    pub(super) async fn open(addr: SocketAddr, room: &str) -> Result<Self> {
        Ok(Self(Stream::open(addr, &path(room), None, true).await?))
    }

    /// Reads to the end, where it shall be told that it was too slow, and before that each event
    /// once and in order. Returns the id of the last.
    pub(super) async fn wake(self) -> Result<u64> {
        let reading = timeout(LIMIT, self.0.gather(|all| all.ends_with(END)));
        let all = reading.await.context("a silent watcher was not dropped")??;
        ensure!(memmem::find(&all, TOO_SLOW).is_some(), "dropped without a reason");
        ensure!(gapless(&numbers(&all)), "events are missing before the drop");
        last_id(&all).context("dropped without an id to come back with")
    }
}

/// Comes back after the event of the id `last`, and reads up to the event of the number `newest`.
pub(super) async fn come_back(addr: SocketAddr, room: &str, last: u64, newest: u32) -> Result<()> {
    let mark = nickname(newest);
    let reading = timeout(LIMIT, async {
        let stream = Stream::open(addr, &path(room), Some(last), false).await?;
        stream.gather(|all| memmem::rfind(all, mark.as_bytes()).is_some()).await
    });
    let all = reading.await.context("what is kept was not sent again")??;
    ensure!(memmem::find(&all, GONE).is_some(), "it was not said that events are missing");
    ensure!(gapless(&numbers(&all)), "events are missing among those sent again");
    Ok(())
}

/// With ids: a watcher that has fallen behind needs them.
fn path(room: &str) -> String {
    format!("/v1/rooms/{room}/events?ids=true")
}

fn numbers(all: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::new();
    Marks::default().feed(all, |number| numbers.push(number));
    numbers
}

fn gapless(numbers: &[u32]) -> bool {
    !numbers.is_empty() && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

fn last_id(all: &[u8]) -> Option<u64> {
    let from = memmem::rfind(all, b"\nid: ")? + b"\nid: ".len();
    let digits = all[from..].split(|&byte| byte == b'\n').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_id_is_that_of_the_last_event() {
        let all = b"\r\n1\r\nid: 41\nevent: x\n\nid: 42\nevent: y\n\n\r\n: you read too slowly\n\n";
        assert_eq!(last_id(all), Some(42));
        assert_eq!(last_id(b"event: y\n\n"), None);
    }

    #[test]
    fn events_without_a_gap_follow_each_other() {
        assert!(gapless(&[3, 4, 5]) && gapless(&[9]));
        assert!(!gapless(&[3, 5]) && !gapless(&[4, 4]) && !gapless(&[]));
    }
}
