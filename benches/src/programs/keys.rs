//! Gives back each key that is typed, with nothing of the terminal's own between, if there is one.

use anyhow::Result;
use rustix::{
    io::{read, write},
    stdio::{stdin, stdout},
    termios::{OptionalActions, isatty, tcgetattr, tcsetattr},
};

use super::READY;

pub(crate) fn run() -> Result<()> {
    if isatty(stdin()) {
        let mut modes = tcgetattr(stdin())?;
        modes.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &modes)?;
    }
    write(stdout(), READY.as_bytes())?;
    let mut keys = [0; 4096];
    loop {
        match read(stdin(), &mut keys)? {
            0 => return Ok(()),
            count => write(stdout(), &keys[..count])?,
        };
    }
}
