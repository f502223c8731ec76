//! The program of a terminal at the far end of a bare TCP connection: what a key costs that only has to
//! reach another process and come back.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::{LIMIT, terminal::Terminal};

const BUFFER: usize = 64 << 10;

pub(super) struct Tcp {
    stream: TcpStream,
    child: Child,
    buffer: Vec<u8>,
}

impl Tcp {
    /// Runs a program whose standard input and output are the far end.
    pub(super) fn open(program: &Path, arguments: &[&str]) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("listen")?;
        let stream = TcpStream::connect(listener.local_addr()?).context("connect")?;
        let (far, _) = listener.accept()?;
        far.set_nodelay(true)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let output = OwnedFd::from(far.try_clone()?);
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::from(OwnedFd::from(far)))
            .stdout(Stdio::from(output))
            .spawn();
        let child = child.with_context(|| format!("start {}", program.display()))?;
        Ok(Self { stream, child, buffer: vec![0; BUFFER] })
    }
}

impl Terminal for Tcp {
    fn enter(&mut self, keys: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(keys)?)
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let read = self.stream.read(&mut self.buffer).context("nothing came in time")?;
        ensure!(read > 0, "the program has ended");
        take(&self.buffer[..read]);
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        vec![std::process::id()]
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}
