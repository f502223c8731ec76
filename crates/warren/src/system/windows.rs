//! Windows.

use std::{
    fs::{self, Metadata},
    io::{self, IsTerminal, Read, Stdin, Stdout, Write, stdin, stdout},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crossterm::ansi_support::supports_ansi;
use crossterm_winapi::{ConsoleMode, Handle};
use tokio::{
    signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close},
    time::{Interval, MissedTickBehavior, interval},
};

use super::Notice;

/// The mode of a console whose keys come as escape sequences (`ENABLE_VIRTUAL_TERMINAL_INPUT`).
const KEYS_AS_SEQUENCES: u32 = 0x0200;

/// How often the size of the console is looked at: no event reports a change.
const LOOK: Duration = Duration::from_millis(250);

/// The key Ctrl-Z, which the standard library takes for the end of input, in raw mode too.
const CTRL_Z: u8 = 0x1a;

/// Makes the console understand what this program writes: colours and the other escape sequences.
pub(crate) fn prepare_console() {
    let _ = supports_ansi();
}

/// The command that opens an address, which is its next argument, in a browser.
pub(crate) fn opener() -> Option<Command> {
    let mut opener = Command::new("rundll32");
    opener.arg("url.dll,FileProtocolHandler");
    Some(opener)
}

/// The user of this process. There are no numbers of users: it is always the same one.
pub(crate) fn user_id() -> u32 {
    0
}

/// The user whose file it is: always the same one.
pub(crate) fn owner(_file: &Metadata) -> u32 {
    0
}

/// Whether this user may make files in a directory. A right that its list of rights takes away is found only by
/// trying.
pub(crate) fn is_writable(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|facts| facts.is_dir())
}

/// Whether a file is a program, by its ending.
pub(crate) fn may_be_run(path: &Path, _file: &Metadata) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["exe", "com", "bat", "cmd"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Kills a process of ours. It may have ended just now.
pub(crate) fn kill(pid: u32) {
    let mut command = Command::new("taskkill");
    command.args(["/F", "/T", "/PID", &pid.to_string()]);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Whether something is piped into this command.
pub(crate) fn is_input_piped() -> bool {
    !stdin().is_terminal()
}

/// The columns of the terminal at standard output, if it is one.
pub(crate) fn output_width() -> Option<usize> {
    let size = stdout().is_terminal().then(crossterm::terminal::size)?;
    size.ok().map(|(columns, _)| usize::from(columns))
}

/// The typed bytes of the console. Keys without a letter come as escape sequences.
pub(crate) fn terminal_input() -> io::Result<TerminalInput> {
    let mode = ConsoleMode::from(Handle::current_in_handle()?);
    mode.set_mode(mode.mode()? | KEYS_AS_SEQUENCES)?;
    Ok(TerminalInput(stdin()))
}

/// See [`terminal_input`].
pub(crate) struct TerminalInput(Stdin);

impl Read for TerminalInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.0.read(buffer)?, buffer.first_mut()) {
            (0, Some(first)) if self.0.is_terminal() => {
                *first = CTRL_Z;
                Ok(1)
            }
            (read, _) => Ok(read),
        }
    }
}

/// Standard output whose bytes are written at once.
pub(crate) fn terminal_output() -> io::Result<TerminalOutput> {
    Ok(TerminalOutput(stdout()))
}

/// See [`terminal_output`].
pub(crate) struct TerminalOutput(Stdout);

impl Write for TerminalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = self.0.lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The console as it is: typed keys are shown during an answer, and come in lines.
pub(crate) struct QuietTerminal;

impl QuietTerminal {
    pub(crate) fn new() -> Self {
        Self
    }
}

/// From now on Ctrl-C does not end this process.
pub(crate) fn take_interrupts() -> io::Result<CtrlC> {
    ctrl_c()
}

/// The signals of the console. From its start on Ctrl-C does not end the process.
pub(crate) struct Notices {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
    looks: Interval,
    size: Option<(u16, u16)>,
}

impl Notices {
    pub(crate) fn new() -> io::Result<Self> {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let size = crossterm::terminal::size().ok();
        Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()?, close: ctrl_close()?, looks, size })
    }

    pub(crate) async fn next(&mut self) -> Notice {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Notice::Interrupt,
                _ = self.stop.recv() => return Notice::End,
                _ = self.close.recv() => return Notice::End,
                _ = self.looks.tick() => {
                    let size = crossterm::terminal::size().ok();
                    if size != self.size {
                        self.size = size;
                        return Notice::Resized;
                    }
                }
            }
        }
    }
}
