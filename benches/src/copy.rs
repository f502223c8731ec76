//! A plain copy of a file over TCP, as `nc` does it: one process reads and sends, another receives and
//! writes, each a buffer at a time.

use std::{
    fs::File,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    time::Instant,
};

use anyhow::{Context, Result};

use crate::child;

/// The size of one read of OpenBSD's `nc`, in bytes.
const BUFFER: usize = 16 << 10;

/// Takes one connection on a free port, which it prints to stdout, and writes all that comes to `to`.
pub(crate) fn receive(to: &Path) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listen")?;
    child::announce(listener.local_addr()?)?;
    let (mut socket, _) = listener.accept()?;
    let mut file = File::create(to).with_context(|| format!("create {}", to.display()))?;
    let bytes = pass(&mut socket, &mut file)?;
    drop(file);
    child::say(&bytes.to_string())?;
    // The sender takes the time until now.
    socket.write_all(b"!").context("tell the sender")
}

/// Sends `from` and prints the seconds until the receiver has all of it.
pub(crate) fn send(from: &Path, to: SocketAddr) -> Result<()> {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(to).context("connect")?;
    let mut file = File::open(from).with_context(|| format!("open {}", from.display()))?;
    pass(&mut file, &mut socket)?;
    socket.shutdown(std::net::Shutdown::Write)?;
    socket.read_exact(&mut [0]).context("the receiver left")?;
    child::say(&begun.elapsed().as_secs_f64().to_string())
}

/// By hand: the standard library's way would leave it to the kernel, which `nc` does not.
fn pass(from: &mut impl Read, to: &mut impl Write) -> Result<u64> {
    let (mut buffer, mut all) = (vec![0; BUFFER], 0);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(all),
            length => {
                to.write_all(&buffer[..length])?;
                all += length as u64;
            }
        }
    }
}
