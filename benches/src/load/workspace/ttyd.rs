//! A terminal of ttyd, with a client on its WebSocket.

use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{
    pause,
    socket::{Message, Socket},
    terminal::{COLUMNS, COMES, ROWS, Terminal},
};

/// The prefixes of output and input messages.
const OUTPUT: u8 = b'0';
const INPUT: u8 = b'0';

/// How often it is looked whether it listens.
const AGAIN: Duration = Duration::from_millis(20);

pub(super) struct Ttyd {
    child: Child,
    socket: Socket,
}

impl Ttyd {
    pub(super) fn open(program: &Path, arguments: &[&str]) -> Result<Self> {
        let addr = crate::targets::free_address()?;
        let mut command = Command::new("ttyd");
        // It ends with its only client.
        command.args(["--port", &addr.port().to_string(), "--interface", "lo", "--once"]);
        if knows_writable()? {
            command.arg("--writable");
        }
        command.arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context("start ttyd")?;
        let socket = connect(addr).inspect_err(|_| end(&mut child))?;
        let mut ttyd = Self { child, socket };
        let hello = json!({"AuthToken": "", "columns": COLUMNS, "rows": ROWS}).to_string();
        ttyd.socket.send(&Message::Binary(hello.as_bytes()))?;
        Ok(ttyd)
    }
}

impl Terminal for Ttyd {
    fn enter(&mut self, keys: &[u8]) -> Result<()> {
        self.socket.send(&Message::Binary(&[&[INPUT], keys].concat()))
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let (Message::Text(message) | Message::Binary(message)) = self.socket.next()?;
        if let Some((&OUTPUT, output)) = message.split_first() {
            take(output);
        }
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        vec![self.child.id()]
    }
}

impl Drop for Ttyd {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    let _killed = child.kill();
    let _ended = child.wait();
}

/// Newer versions of ttyd take input only with `--writable`; older versions do not know that flag.
fn knows_writable() -> Result<bool> {
    let help = Command::new("ttyd").arg("--help").stdin(Stdio::null()).output();
    let help = help.context("start ttyd")?;
    let says = |text: &[u8]| memchr::memmem::find(text, b"--writable").is_some();
    Ok(says(&help.stdout) || says(&help.stderr))
}

/// Its first client is its last, but not a connection that asks for nothing.
fn connect(addr: SocketAddr) -> Result<Socket> {
    let begun = Instant::now();
    loop {
        match TcpStream::connect_timeout(&addr, COMES) {
            Ok(_) => return Socket::open(addr, Some("tty")),
            Err(e) => ensure!(begun.elapsed() < COMES, "ttyd does not listen: {e}"),
        }
        pause(AGAIN);
    }
}
