//! Differences between systems: acknowledgements without delay, which only Linux can be asked for.

use std::io;

use tokio::net::TcpStream;

/// Acknowledges at once what is read next. Other systems delay as they do.
#[cfg(target_os = "linux")]
pub(crate) fn acknowledge_at_once(stream: &TcpStream) -> io::Result<()> {
    stream.set_quickack(true)
}

/// Acknowledges at once what is read next. Other systems delay as they do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn acknowledge_at_once(_stream: &TcpStream) -> io::Result<()> {
    Ok(())
}
