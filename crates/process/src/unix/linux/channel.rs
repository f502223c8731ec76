//! The socket between the daemon and the supervisor: a pair, or one at a path for the next daemon. It
//! carries whole packets, and descriptors with them.

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt as _,
    },
    path::Path,
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    recvmsg, sendmsg, socket_with, socketpair, sockopt,
};

/// The kind of the socket, which keeps packets whole.
pub(crate) const KIND: SocketType = SocketType::SEQPACKET;
/// The most descriptors that come with one packet.
pub(crate) const MOST_DESCRIPTORS: usize = 4;
/// Room for a few of the largest packets. The kernel may grant less, but always enough for one.
const BUFFER: usize = 512 * 1024;

/// A pair of connected ends. Both are non-blocking and close-on-exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (one, other) = socketpair(AddressFamily::UNIX, KIND, flags, None)?;
    sockopt::set_socket_send_buffer_size(&one, BUFFER)?;
    sockopt::set_socket_send_buffer_size(&other, BUFFER)?;
    Ok((one, other))
}

/// Listens at a path in a directory, for its owner only. A socket that is left there is replaced.
pub(crate) fn listen(dir: &Path, name: &str) -> io::Result<OwnedFd> {
    let place = Place::of(dir)?;
    match std::fs::remove_file(dir.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = unconnected()?;
    rustix::net::bind(&socket, &place.address(name)?)?;
    // Before anybody can connect.
    std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, 8)?;
    Ok(socket)
}

/// Connects to a socket at a path in a directory.
pub(crate) fn connect(dir: &Path, name: &str) -> io::Result<OwnedFd> {
    let place = Place::of(dir)?;
    let socket = unconnected()?;
    rustix::net::connect(&socket, &place.address(name)?)?;
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    Ok(socket)
}

/// Takes a connection that waits.
pub(crate) fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    let socket = rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    Ok(socket)
}

fn unconnected() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, KIND, flags, None)?)
}

/// A directory, whose path may be longer than an address may be.
struct Place(File);

impl Place {
    fn of(dir: &Path) -> io::Result<Self> {
        Ok(Self(File::open(dir)?))
    }

    fn address(&self, name: &str) -> io::Result<SocketAddrUnix> {
        Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()))?)
    }
}

/// Sends a packet. An error of the kind `WouldBlock` means that the other end has to read first.
pub(crate) fn send(socket: impl AsFd, packet: &[u8], with: &[OwnedFd]) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = with.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a packet into `buffer`. Returns its length, 0 when the other end is gone, and its descriptors.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(buffer)];
    let received = recvmsg(socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(descriptors).flatten().collect();
    // After the descriptors were taken, so that they are closed.
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet did not fit"));
    }
    Ok((received.bytes, descriptors))
}

fn descriptors(message: RecvAncillaryMessage<'_>) -> Option<Vec<OwnedFd>> {
    match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors.collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::unix::messages::MAX_REQUEST;

    #[test]
    fn packets_stay_whole_and_descriptors_work_at_the_other_end() {
        let (one, other) = pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&one, b"first", &[writer.into()]).unwrap();
        send(&one, b"second", &[]).unwrap();
        let mut buffer = [0; 64];
        let (length, mut received) = receive(&other, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"first");
        std::fs::File::from(received.pop().unwrap()).write_all(b"hello").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert_eq!(receive(&other, &mut buffer).unwrap().0, 6);
    }

    #[test]
    fn the_largest_packet_passes_and_one_that_does_not_fit_is_an_error() {
        let (one, other) = pair().unwrap();
        let packet = vec![7; MAX_REQUEST];
        send(&one, &packet, &[]).unwrap();
        let mut buffer = vec![0; MAX_REQUEST];
        assert_eq!(receive(&other, &mut buffer).unwrap().0, MAX_REQUEST);
        send(&one, &packet, &[]).unwrap();
        let error = receive(&other, &mut buffer[..100]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn an_end_that_is_gone_reads_as_nothing_and_a_full_one_would_block() {
        let (one, other) = pair().unwrap();
        let full = (0..100_000).find_map(|_| send(&one, b"packet", &[]).err()).unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        drop(other);
        let (one, other) = pair().unwrap();
        drop(one);
        assert_eq!(receive(&other, &mut [0; 8]).unwrap().0, 0);
    }
}
