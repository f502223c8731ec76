//! A NATS server of its own for tests: it listens on a free port of loopback, keeps its streams in a temporary
//! directory, and ends with the test's process, however that ends.
//!
//! The program is the one that `NATS_SERVER` names, or the one in `target/tools`, or `nats-server` in the
//! path.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server runs below a shell that ends it when the test's process has gone, and removes its directory if nobody
/// else does. Its process id is in the file `pid`.
const WATCHED: &str = r#"trap "" INT TERM; "$@" & echo $! >pid; read gone; kill -CONT $!; kill -KILL $!; wait $!; [ -z "$REMOVE" ] || rm -rf "$REMOVE""#;

/// A NATS server.
pub struct NatsServer {
    directory: TempDir,
    watcher: Option<Child>,
    /// Known once it has run; it keeps it when it runs again.
    port: Option<u16>,
    options: Vec<String>,
    /// Whether it lives as long as the process, and so is never dropped.
    is_shared: bool,
}

impl NatsServer {
    /// A server that all tests of a process share. Each uses a group of its own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<NatsServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start_as(&["-js"], true))
    }

    /// A server for one test, which may stop it.
    pub fn start() -> Self {
        Self::start_with(&["-js"])
    }

    /// A server with these options alone: without `-js` it has no JetStream.
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_as(options, false)
    }

    fn start_as(options: &[&str], is_shared: bool) -> Self {
        let options = options.iter().map(ToString::to_string).collect();
        let directory = tempfile::tempdir().unwrap();
        let mut server = Self { directory, watcher: None, port: None, options, is_shared };
        server.run();
        server
    }

    /// Starts it again after an end, at its old port and without what it had in memory.
    pub fn run(&mut self) {
        assert!(self.watcher.is_none(), "it runs");
        let place = self.directory.path();
        for ports in self.ports_files() {
            fs::remove_file(ports).unwrap();
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCHED, "sh"]).arg(program()).current_dir(place);
        shell.args(["--addr", "127.0.0.1", "--port"]);
        shell.arg(self.port.map_or_else(|| "-1".to_owned(), |port| port.to_string()));
        shell.arg("--ports_file_dir").arg(place).arg("--store_dir").arg(place.join("streams"));
        shell.args(&self.options);
        let log = fs::File::create(place.join("log")).unwrap();
        shell.env("REMOVE", if self.is_shared { place.as_os_str() } else { "".as_ref() });
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.watcher = Some(shell.spawn().unwrap());
        self.port = Some(self.wait_for_port());
    }

    /// Its URL, for this group of servers.
    pub fn url(&self, group: &str) -> String {
        format!("nats://{}/{group}", self.address())
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.unwrap())
    }

    /// Stops it where it is, as a machine that hangs.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Ends it at once, without any farewell.
    pub fn kill(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        drop(watcher.stdin.take());
        let _status = watcher.wait();
    }

    fn signal(&self, signal: &str) {
        let pid = fs::read_to_string(self.directory.path().join("pid")).unwrap();
        assert!(Command::new("kill").arg(signal).arg(pid.trim()).status().unwrap().success());
    }

    #[expect(clippy::disallowed_methods, reason = "nothing tells that another process is ready")]
    fn wait_for_port(&self) -> u16 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(port) = self.ports_files().iter().find_map(|file| port_in(file)) {
                return port;
            }
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "the NATS server does not start: {}", log());
            sleep(Duration::from_millis(10));
        }
    }

    fn ports_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.directory.path()).unwrap().flatten();
        let paths = files.map(|file| file.path());
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "ports")).collect()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The port in what the server writes when it listens; `None` while it has not written all of it.
fn port_in(file: &Path) -> Option<u16> {
    let told: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    told["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
}

/// The program: the one that the environment names, or the tools' own, or the path's.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("NATS_SERVER") {
        return named.into();
    }
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let own = [tools.join("bin/nats-server"), tools.join("nats/bin/nats-server")];
    own.into_iter().find(|path| path.exists()).unwrap_or_else(|| "nats-server".into())
}
