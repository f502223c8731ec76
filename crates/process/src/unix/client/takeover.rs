//! Takes over the supervisor of an earlier daemon, with all its processes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};
use uuid::Uuid;

use super::{Child, Limits, Supervisor, driver::Helper};
use crate::{
    error::ProcessError,
    unix::{
        channel, kernel,
        messages::{Hello, KeepOrder, SECRET, VERSION, Welcome},
        unsafe_calls::watch,
    },
};

/// The name of the socket at which a supervisor waits for the next daemon.
pub(crate) const SOCKET: &str = "supervisor.socket";
/// The name of the file with what a daemon has to know to take over.
const SECRET_FILE: &str = "supervisor.secret";
/// How long the supervisor may take to notice that the earlier daemon is gone, and to answer.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);
/// How long a supervisor of another version may take to end everything.
const LONGEST_END: Duration = Duration::from_secs(15);

/// How sessions outlive the daemon.
#[derive(Clone)]
pub struct Keep {
    span: Duration,
    dir: PathBuf,
    secret: [u8; SECRET],
}

/// The outcome of looking for the supervisor of an earlier daemon.
#[derive(Debug)]
pub enum TakenOver {
    /// There is none.
    Nothing,
    /// It is this daemon's now, with these processes.
    Yes(Supervisor, Vec<HeldProcess>),
    /// It belongs to another version of this program, and has ended all its processes.
    OtherVersion,
}

/// A process of an earlier daemon.
#[derive(Debug)]
pub struct HeldProcess {
    /// Its session.
    pub id: Uuid,
    /// The process. It may have ended meanwhile.
    pub child: Child,
}

impl Keep {
    /// Keeps sessions for this long while there is no daemon that uses `dir`, which only its user may
    /// enter. Makes a file there. It blocks.
    ///
    /// # Errors
    /// When the file can be neither read nor made.
    pub fn new(dir: &Path, span: Duration) -> io::Result<Self> {
        Ok(Self { span, dir: dir.to_owned(), secret: secret(&dir.join(SECRET_FILE))? })
    }
}

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keep").field("span", &self.span).field("dir", &self.dir).finish()
    }
}

impl From<&Keep> for KeepOrder {
    fn from(keep: &Keep) -> Self {
        Self { span: keep.span, dir: keep.dir.clone().into(), secret: keep.secret }
    }
}

impl Supervisor {
    /// Takes over the supervisor that an earlier daemon with the same directory left, if there is one.
    ///
    /// # Errors
    /// [`ProcessError::TakeOver`] when there is one that does not answer as it should. Its sessions end
    /// when its time is up.
    pub async fn take_over(keep: &Keep, limits: Limits) -> Result<TakenOver, ProcessError> {
        let failed = |source| ProcessError::TakeOver { dir: keep.dir.clone(), source };
        let socket = match channel::connect(&keep.dir, SOCKET) {
            Ok(socket) => socket,
            Err(error) if is_nobody(&error) => return Ok(TakenOver::Nothing),
            Err(error) => return Err(failed(error)),
        };
        let (pid, uid) = kernel::peer(&socket).map_err(failed)?;
        // Before the secret is sent: another user may listen at the path.
        if uid != rustix::process::geteuid().as_raw() {
            return Err(failed(io::ErrorKind::PermissionDenied.into()));
        }
        let socket = watch(socket, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        let hello = Hello { version: VERSION, secret: keep.secret };
        channel::send(socket.get_ref(), &hello.encode(), &[]).map_err(failed)?;
        let answer = timeout(LONGEST_ANSWER, answer(&socket)).await;
        let answer = answer.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?;
        if answer.map_err(failed)? == Some(Welcome::OtherVersion) {
            // It closes the socket once it has ended everything.
            let _late = timeout(LONGEST_END, ended(&socket)).await;
            return Ok(TakenOver::OtherVersion);
        }
        let helper = Helper::TakenOver { pid };
        let (supervisor, held) =
            Self::begin(socket.into_inner(), helper, limits, Some(keep)).await?;
        Ok(TakenOver::Yes(supervisor, held))
    }
}

/// Whether there is no socket, or nobody who listens at it.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

async fn answer(socket: &AsyncFd<OwnedFd>) -> io::Result<Option<Welcome>> {
    let mut byte = [0];
    let length = receive(socket, &mut byte).await?;
    match (length, byte[0]) {
        (1, yes) if yes == Welcome::Yes as u8 => Ok(Some(Welcome::Yes)),
        (1, other) if other == Welcome::OtherVersion as u8 => Ok(Some(Welcome::OtherVersion)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it did not recognise this server")),
    }
}

async fn ended(socket: &AsyncFd<OwnedFd>) {
    let mut packet = [0; 64];
    while receive(socket, &mut packet).await.is_ok_and(|length| length > 0) {}
}

async fn receive(socket: &AsyncFd<OwnedFd>, packet: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut ready = socket.readable().await?;
        if let Ok(received) = ready.try_io(|fd| channel::receive(fd.get_ref(), packet)) {
            return received.map(|(length, _)| length);
        }
    }
}

/// The secret in a file, which is made if there is none, or none that is this user's alone.
fn secret(path: &Path) -> io::Result<[u8; SECRET]> {
    let mut secret = [0; SECRET];
    if let Ok(mut file) = File::open(path) {
        let about = file.metadata()?;
        let is_own = about.uid() == rustix::process::geteuid().as_raw();
        if is_own && about.mode() & 0o077 == 0 && file.read_exact(&mut secret).is_ok() {
            return Ok(secret);
        }
    }
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    // Written whole and then renamed: a daemon that starts meanwhile never reads half a secret.
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(&secret)?;
    fs::rename(&new, path)?;
    Ok(secret)
}
