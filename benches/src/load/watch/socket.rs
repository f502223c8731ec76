//! A socket that reports when its bytes arrived.

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

const CONNECT: Duration = Duration::from_secs(10);

/// Bytes that a narrow socket takes before it is read.
const NARROW: u32 = 4096;

/// A connection whose bytes the kernel stamps with the time they arrived.
pub(super) struct Socket(TcpStream);

pub(super) struct Received {
    pub(super) bytes: usize,
    /// When the last of them arrived, in nanoseconds since 1970, if the kernel stamps arrivals.
    pub(super) arrived: Option<u64>,
}

impl Socket {
    /// Connects. A narrow one holds back the other end after a few kilobytes that are not read.
    pub(super) async fn open(addr: SocketAddr, narrow: bool) -> Result<Self> {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if narrow {
            socket.set_recv_buffer_size(NARROW)?;
            kernel::small_segments(&socket)?;
        }
        let connecting = timeout(CONNECT, socket.connect(addr)).await;
        let stream = connecting.context("connect time-out")?.context("connect")?;
        kernel::stamp(&stream)?;
        Ok(Self(stream))
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write_all(bytes).await?)
    }

    /// Waits until something can be read, or its end. It may be woken for nothing.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Reads what has arrived; `None` if nothing has.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        match self.0.try_io(Interest::READABLE, || kernel::receive(&self.0, buffer)) {
            Ok(received) => Ok(Some(received)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::{
        io::{self, IoSliceMut},
        os::fd::{AsFd, AsRawFd},
    };

    use nix::sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt},
        time::TimeSpec,
    };
    use tokio::net::TcpStream;

    use super::Received;

    /// The largest segment, in bytes. The kernel's send buffer grows with it.
    const SEGMENT: u32 = 536;

    pub(super) fn stamp(socket: &impl AsFd) -> io::Result<()> {
        Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
    }

    pub(super) fn small_segments(socket: &impl AsFd) -> io::Result<()> {
        Ok(setsockopt(socket, sockopt::TcpMaxSeg, &SEGMENT)?)
    }

    pub(super) fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
        let mut space = nix::cmsg_space!(TimeSpec);
        let mut pieces = [IoSliceMut::new(buffer)];
        let message =
            recvmsg::<()>(stream.as_raw_fd(), &mut pieces, Some(&mut space), MsgFlags::empty())?;
        let stamp = message.cmsgs()?.find_map(|at| match at {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        Ok(Received { bytes: message.bytes, arrived: stamp.and_then(nanoseconds) })
    }

    fn nanoseconds(time: TimeSpec) -> Option<u64> {
        let seconds = u64::try_from(time.tv_sec()).ok()?;
        Some(seconds.checked_mul(1_000_000_000)? + u64::try_from(time.tv_nsec()).ok()?)
    }
}

/// For systems without time stamps and segment sizes.
#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;

    use tokio::net::TcpStream;

    use super::Received;

    pub(super) fn stamp<T>(_: &T) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn small_segments<T>(_: &T) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
        Ok(Received { bytes: stream.try_read(buffer)?, arrived: None })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::backend::now;

    #[tokio::test]
    async fn bytes_have_the_time_of_their_arrival_however_late_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = Socket::open(listener.local_addr().unwrap(), true).await.unwrap();
        let (mut other, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 16];
        // The kernel begins to stamp a moment after it was asked to.
        let received = loop {
            let before = now();
            other.write_all(b"x").await.unwrap();
            let written = now();
            socket.readable().await.unwrap();
            let Some(received) = socket.receive(&mut buffer).unwrap() else { continue };
            if let Some(arrived) = received.arrived {
                assert!(before <= arrived && arrived <= written.max(before + 1), "{arrived}");
                break received;
            }
        };
        assert_eq!(received.bytes, 1);
        drop(other);
        socket.readable().await.unwrap();
        let end = socket.receive(&mut buffer).unwrap();
        assert_eq!(end.map(|end| end.bytes), Some(0));
    }
}
