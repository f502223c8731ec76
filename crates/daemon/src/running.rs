//! Where the running server of a data directory is: a file in that directory, which commands of this machine read.

use std::{
    fs,
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use crate::{
    VERSION,
    data::{is_in_use, private},
};

/// The name of the file in the data directory.
pub const SERVER_FILE: &str = "server.json";

/// The longest such file that is read, in bytes.
const LONGEST: u64 = 64 * 1024;

/// A running server, as its data directory describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// The id of the server's process.
    pub pid: u32,
    /// Its URLs. The first is for this machine, the others are for other machines.
    pub urls: Vec<String>,
    /// Its version.
    pub version: String,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// The file of the certificate that it shows, if it speaks TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
}

impl ServerFile {
    /// The server of this process, which listens at `address`. `certificate`: the file of the certificate
    /// that it shows, if it speaks TLS.
    pub(crate) fn own(address: SocketAddr, certificate: Option<&Path>) -> Self {
        let now = base::since_1970(SystemTime::now());
        let own = Self {
            pid: std::process::id(),
            urls: urls(address, certificate.is_some()),
            version: VERSION.to_owned(),
            started_at: now.as_secs(),
            tls: certificate.is_some(),
            certificate: None,
        };
        own.with_certificate(certificate)
    }

    /// The same server with another certificate.
    pub(crate) fn with_certificate(self, certificate: Option<&Path>) -> Self {
        let whole = |file: &Path| std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        Self { certificate: certificate.map(whole), ..self }
    }

    /// The running server of a data directory. `None` when there is no such file, when it cannot be read, or when it
    /// was left by a server that has died, which is known by the directory's free lock.
    #[must_use]
    pub fn of(data_dir: &Path) -> Option<Self> {
        let path = data_dir.join(SERVER_FILE);
        let length = fs::metadata(&path).ok()?.len();
        let text = (length <= LONGEST).then(|| fs::read(&path).ok()).flatten()?;
        let file: Self = serde_json::from_slice(&text).ok()?;
        (!file.urls.is_empty() && is_in_use(data_dir)).then_some(file)
    }

    /// Writes the file, which only its owner can read. A reader sees either the former file or this one, whole.
    pub(crate) fn write(&self, data_dir: &Path) -> io::Result<()> {
        let new = data_dir.join("server.json.new");
        let mut file = private().truncate(true).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        fs::rename(new, data_dir.join(SERVER_FILE))
    }
}

/// Removes the file, if it is there.
pub(crate) fn forget(data_dir: &Path) {
    let path = data_dir.join(SERVER_FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a file of an earlier server stays");
        }
        _ => {}
    }
}

/// The URLs of a server that listens at `address`: the first is for this machine, the others are for other machines.
/// None of them has the unspecified address.
pub(crate) fn urls(address: SocketAddr, tls: bool) -> Vec<String> {
    of_addresses(address, tls, &hardware::addresses())
}

/// The URL at which processes of this machine reach a server that listens at `address`.
pub(crate) fn own_url(address: SocketAddr, tls: bool) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        // A socket on `::` also accepts IPv4, unless the system is configured otherwise; `::1` always works.
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(Ipv6Addr::LOCALHOST),
        other => other,
    };
    url(SocketAddr::new(ip, address.port()), tls)
}

fn of_addresses(address: SocketAddr, tls: bool, own: &[IpAddr]) -> Vec<String> {
    let mut all = vec![own_url(address, tls)];
    if address.ip().is_unspecified() {
        let is_heard = |ip: &&IpAddr| address.is_ipv6() || ip.is_ipv4();
        let others = own.iter().filter(is_heard);
        all.extend(others.map(|ip| url(SocketAddr::new(*ip, address.port()), tls)));
    }
    all
}

fn url(address: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::data::DataDir;

    #[test]
    fn a_server_on_all_addresses_is_reached_by_loopback_here_and_by_its_addresses_elsewhere() {
        let own = ["192.168.1.5", "fd00::7"].map(|ip| ip.parse().unwrap());
        let urls = |address: &str, tls| of_addresses(address.parse().unwrap(), tls, &own);
        let v4 = ["http://127.0.0.1:9178", "http://192.168.1.5:9178"];
        assert_eq!(urls("0.0.0.0:9178", false), v4);
        let both = ["https://[::1]:1", "https://192.168.1.5:1", "https://[fd00::7]:1"];
        assert_eq!(urls("[::]:1", true), both);
        assert_eq!(urls("10.0.0.7:1", false), ["http://10.0.0.7:1"]);
        assert_eq!(urls("127.0.0.1:1", false), ["http://127.0.0.1:1"]);
    }

    #[test]
    fn a_file_counts_as_long_as_its_server_holds_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(ServerFile::of(path), None);
        let data = DataDir::open(path).unwrap();
        let own = ServerFile::own(([127, 0, 0, 1], 7).into(), None);
        own.write(path).unwrap();
        assert_eq!(ServerFile::of(path), Some(own));
        let mode = fs::metadata(path.join(SERVER_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(data);
        assert!(path.join(SERVER_FILE).exists(), "the server died");
        assert_eq!(ServerFile::of(path), None);
        let _next = DataDir::open(path).unwrap();
        assert_eq!(ServerFile::of(path), None, "the next one does not take over its address");
    }

    #[test]
    fn a_file_that_is_no_description_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let _data = DataDir::open(directory.path()).unwrap();
        let path = directory.path().join(SERVER_FILE);
        for text in ["", "{}", r#"{"pid":1,"urls":[],"version":"1","started_at":1,"tls":false}"#] {
            fs::write(&path, text).unwrap();
            assert_eq!(ServerFile::of(directory.path()), None, "{text}");
        }
        let own = ServerFile::own(([127, 0, 0, 1], 7).into(), None);
        let long = ServerFile { version: "x".repeat(LONGEST as usize), ..own };
        long.write(directory.path()).unwrap();
        assert_eq!(ServerFile::of(directory.path()), None, "it is longer than the bound");
    }

    #[test]
    fn the_certificate_of_a_server_with_tls_is_named_in_full() {
        let own = ServerFile::own(([127, 0, 0, 1], 7).into(), Some(Path::new("own.pem")));
        assert!(own.tls && own.certificate.unwrap().is_absolute());
        assert_eq!(own.urls, ["https://127.0.0.1:7"]);
    }
}
