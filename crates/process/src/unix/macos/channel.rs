//! The socket between the daemon and the supervisor, where the system's local sockets do not keep packets
//! whole: a stream, with the length before each packet. A packet that is begun is finished before anything
//! else, or the other end counts as gone.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt as _,
    },
    path::Path,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, ioctl_fioclex, ioctl_fionbio},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
        SocketType, recvmsg, sendmsg, socket_with, socketpair, sockopt,
    },
};

/// The kind of the socket.
pub(crate) const KIND: SocketType = SocketType::STREAM;
/// The most descriptors that come with one packet.
const MOST_DESCRIPTORS: usize = 4;
/// Room for a few of the largest packets.
const BUFFER: usize = 512 * 1024;
/// The bytes of the length before a packet.
const HEAD: usize = 4;
/// How long the other end may take with the rest of a packet.
const PATIENCE: Duration = Duration::from_secs(10);

/// A pair of connected ends. Both are non-blocking and close-on-exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (one, other) = socketpair(AddressFamily::UNIX, KIND, SocketFlags::empty(), None)?;
    Ok((prepared(one)?, prepared(other)?))
}

/// Listens at a path in a directory, for its owner only. A socket that is left there is replaced.
pub(crate) fn listen(dir: &Path, name: &str) -> io::Result<OwnedFd> {
    let path = dir.join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = prepared(socket_with(AddressFamily::UNIX, KIND, SocketFlags::empty(), None)?)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(&path)?)?;
    // Before anybody can connect.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, 8)?;
    Ok(socket)
}

/// Connects to a socket at a path in a directory.
pub(crate) fn connect(dir: &Path, name: &str) -> io::Result<OwnedFd> {
    let socket = prepared(socket_with(AddressFamily::UNIX, KIND, SocketFlags::empty(), None)?)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(dir.join(name))?)?;
    Ok(socket)
}

/// Takes a connection that waits.
pub(crate) fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    prepared(rustix::net::accept(listener)?)
}

fn prepared(socket: OwnedFd) -> io::Result<OwnedFd> {
    ioctl_fioclex(&socket)?;
    ioctl_fionbio(&socket, true)?;
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    sockopt::set_socket_recv_buffer_size(&socket, BUFFER)?;
    Ok(socket)
}

/// Sends a packet. An error of the kind `WouldBlock` means that the other end has to read first.
pub(crate) fn send(socket: impl AsFd, packet: &[u8], with: &[OwnedFd]) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = with.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let length = u32::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let whole = [&length.to_ne_bytes(), packet].concat();
    // The descriptors go with the first byte.
    let mut sent = sendmsg(&socket, &[IoSlice::new(&whole)], &mut control, SendFlags::empty())?;
    while sent < whole.len() {
        wait(&socket, PollFlags::OUT)?;
        match rustix::io::write(&socket, &whole[sent..]) {
            Ok(more) => sent += more,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives a packet into `buffer`. Returns its length, 0 when the other end is gone, and its descriptors.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut head = [0; HEAD];
    let mut slices = [IoSliceMut::new(&mut head)];
    let received = recvmsg(&socket, &mut slices, &mut control, RecvFlags::empty())?;
    let descriptors: Vec<_> = control.drain().filter_map(descriptors).flatten().collect();
    descriptors.iter().try_for_each(ioctl_fioclex)?;
    if received.bytes == 0 {
        return Ok((0, descriptors));
    }
    fill(&socket, &mut head[received.bytes..])?;
    let place = usize::try_from(u32::from_ne_bytes(head)).ok().and_then(|it| buffer.get_mut(..it));
    let Some(place) = place.filter(|_| !received.flags.contains(ReturnFlags::CTRUNC)) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet did not fit"));
    };
    fill(&socket, place)?;
    Ok((place.len(), descriptors))
}

/// Reads the rest of a packet.
fn fill(socket: impl AsFd, mut rest: &mut [u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match rustix::io::read(&socket, &mut *rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => rest = &mut rest[read..],
            Err(Errno::AGAIN) => wait(&socket, PollFlags::IN)?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait(socket: impl AsFd, flags: PollFlags) -> io::Result<()> {
    let limit = PATIENCE.try_into().map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&socket, flags)], Some(&limit)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
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
        let nothing = receive(&other, &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_largest_packet_passes_and_one_that_does_not_fit_is_an_error() {
        let (one, other) = pair().unwrap();
        let packet = vec![7; MAX_REQUEST];
        let sending = std::thread::spawn(move || {
            send(&one, &packet, &[]).unwrap();
            send(&one, &packet, &[])
        });
        let mut buffer = vec![0; MAX_REQUEST];
        wait(&other, PollFlags::IN).unwrap();
        assert_eq!(receive(&other, &mut buffer).unwrap().0, MAX_REQUEST);
        wait(&other, PollFlags::IN).unwrap();
        let error = receive(&other, &mut buffer[..100]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        drop(other);
        let _gone_or_sent = sending.join().unwrap();
    }

    #[test]
    fn an_end_that_is_gone_reads_as_nothing_and_a_name_can_be_connected_to() {
        let dir = tempfile::tempdir().unwrap();
        let listener = listen(dir.path(), "socket").unwrap();
        let one = connect(dir.path(), "socket").unwrap();
        let other = accept(&listener).unwrap();
        send(&one, b"packet", &[]).unwrap();
        drop(one);
        assert_eq!(receive(&other, &mut [0; 8]).unwrap().0, 6);
        assert_eq!(receive(&other, &mut [0; 8]).unwrap().0, 0);
    }
}
