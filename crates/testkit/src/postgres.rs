//! A PostgreSQL server of its own for tests: it listens in a temporary directory only, and ends with the test's
//! process, however that ends. It needs the programs of Debian's package `postgresql`.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody's user and group.
const NOBODY: u32 = 65_534;

/// The server runs below a shell that ends it when the test's process has gone, and removes its directory if nobody
/// else does.
const WATCHED: &str = r#"trap "" INT TERM; "$@" & read gone; kill -QUIT $!; wait $!; [ -z "$REMOVE" ] || rm -rf "$REMOVE""#;

/// A transaction that another client has open. Dropping it rolls it back.
#[must_use]
pub struct HeldTransaction(Child);

impl Drop for HeldTransaction {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// A database server.
pub struct PostgresServer {
    directory: TempDir,
    watcher: Option<Child>,
    databases: AtomicU32,
    /// Whether it lives as long as the process, and so is never dropped.
    is_shared: bool,
    /// The port at which it speaks TLS on the loopback, too, if it does.
    port: Option<u16>,
}

impl PostgresServer {
    /// A server that all tests of a process share. Each asks it for a database of its own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start_as(true))
    }

    /// A server for one test, which may stop it.
    pub fn start() -> Self {
        Self::start_as(false)
    }

    /// A server for one test that speaks TLS on the loopback, with this certificate and key in PEM.
    pub fn start_with_tls(certificate: &str, key: &str) -> Self {
        let mut server = Self::made(false);
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = server.data().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        server.port = Some(free_port());
        server.run();
        server
    }

    fn start_as(is_shared: bool) -> Self {
        let mut server = Self::made(is_shared);
        server.run();
        server
    }

    /// A server that does not run.
    fn made(is_shared: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let databases = AtomicU32::new(0);
        let server = Self { directory, watcher: None, databases, is_shared, port: None };
        let data = server.data();
        let options =
            ["--no-sync", "--auth=trust", "--username=warren", "--encoding=UTF8", "--no-locale"];
        let made = server.as_user("initdb").args(options).arg("-D").arg(&data).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server
    }

    /// Starts it again after an end.
    pub fn run(&mut self) {
        assert!(self.watcher.is_none(), "it runs");
        let mut server = self.as_user("postgres");
        server.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        server.args(["-c", "fsync=off", "-c", "autovacuum=off"]);
        match self.port {
            None => server.args(["-c", "listen_addresses="]),
            Some(port) => server
                .args(["-c", "listen_addresses=127.0.0.1", "-c", "ssl=on", "-p"])
                .arg(port.to_string()),
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCHED, "sh"]).arg(server.get_program()).args(server.get_args());
        let log = fs::File::create(self.directory.path().join("log")).unwrap();
        shell.env(
            "REMOVE",
            if self.is_shared { self.directory.path().as_os_str() } else { "".as_ref() },
        );
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.watcher = Some(shell.spawn().unwrap());
        self.wait_until(|| self.psql("postgres", "SELECT 1").is_ok());
    }

    /// The URL of a new, empty database.
    pub fn database(&self) -> String {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        let host = self.directory.path().display().to_string().replace('/', "%2F");
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("postgres://warren@{host}{port}/{name}")
    }

    /// The URL of a new, empty database over TCP on the loopback, by this name of it.
    pub fn database_at(&self, host: &str) -> String {
        let url = self.database();
        let (_, name) = url.rsplit_once('/').unwrap();
        format!("postgres://warren@{host}:{}/{name}", self.port.unwrap())
    }

    /// Runs SQL in the database of this URL, past everything, and returns what it prints.
    pub fn sql(&self, url: &str, sql: &str) -> String {
        let (_, name) = url.rsplit_once('/').unwrap();
        self.psql(name, sql).unwrap()
    }

    /// Runs SQL in a transaction of its own, which stays open until the result is dropped.
    pub fn hold(&self, url: &str, sql: &str) -> HeldTransaction {
        let (_, name) = url.rsplit_once('/').unwrap();
        let mut psql = self.psql_command(name);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        writeln!(stdin, "BEGIN; {sql}; SELECT 'held';").unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        assert_eq!(said, "held");
        HeldTransaction(child)
    }

    /// Stops all its processes where they are, as a machine that hangs.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Ends it at once, without any farewell.
    pub fn kill(&mut self) {
        self.signal("-KILL");
        self.end();
    }

    fn end(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        drop(watcher.stdin.take());
        let _status = watcher.wait();
    }

    /// Sends a signal to the server and to its children.
    fn signal(&self, signal: &str) {
        let first = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let first = first.lines().next().unwrap();
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", first]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        let _some_may_be_gone = Command::new("kill")
            .arg(signal)
            .arg(first)
            .args(children.split_whitespace())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }

    fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let done = self.psql_command(database).args(["-c", sql]).output().unwrap();
        let told = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() { Ok(told(&done.stdout)) } else { Err(told(&done.stderr)) }
    }

    fn psql_command(&self, database: &str) -> Command {
        let mut psql = Command::new(program("psql"));
        psql.args(["-qXAt", "-v", "ON_ERROR_STOP=1", "-U", "warren", "-d", database]);
        psql.args(self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        psql.arg("-h").arg(self.directory.path());
        psql
    }

    #[expect(clippy::disallowed_methods, reason = "nothing tells that another process is ready")]
    fn wait_until(&self, so: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !so() {
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "the database server does not start: {}", log());
            sleep(Duration::from_millis(20));
        }
    }

    /// A program of the package, not as root: the server refuses that.
    fn as_user(&self, name: &str) -> Command {
        if !is_root() {
            return Command::new(program(name));
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program(name));
        command.current_dir(self.directory.path());
        command
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A port that nobody uses now: the server cannot be told to find one.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Debian's package keeps its programs out of the path.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name));
    found.filter(|path| path.exists()).max().unwrap_or_else(|| PathBuf::from(name))
}

fn is_root() -> bool {
    fs::metadata(Path::new("/proc/self")).is_ok_and(|own| own.uid() == 0)
}
