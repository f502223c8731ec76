//! Differences between systems: sockets that are files.

use std::path::Path;

use tokio_postgres::config::Host;

/// The name of a host, or else the path of a socket of this machine.
#[cfg(unix)]
pub(super) fn name_or_socket(host: &Host) -> Result<&str, &Path> {
    match host {
        Host::Tcp(name) => Ok(name),
        Host::Unix(path) => Err(path),
    }
}

/// The name of a host, or else the path of a socket of this machine, which Windows does not have.
#[cfg(windows)]
pub(super) fn name_or_socket(host: &Host) -> Result<&str, &Path> {
    let Host::Tcp(name) = host;
    Ok(name)
}
