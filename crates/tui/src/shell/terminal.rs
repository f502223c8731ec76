//! The screen of a terminal, which is always given back: at the end, at an error, at a panic.

use std::{
    io::{self, IsTerminal, Stdout, stdin, stdout},
    panic,
    sync::Once,
    time::Duration,
};

use crossterm::{
    cursor::Show,
    event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{Frame, Terminal, backend::CrosstermBackend, layout::Size};
use tokio::time::Instant;

use super::TuiError;

/// The screen of a terminal. Dropping it gives it back.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    drawn: Option<Instant>,
}

impl Screen {
    /// Takes the screen.
    pub(super) fn open() -> Result<Self, TuiError> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Err(TuiError::NoTerminal);
        }
        // Before the screen is taken: a panic meanwhile must give it back, too.
        give_back_at_panics();
        let taken = take().and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        let terminal = taken.inspect_err(|_| give_back())?;
        Ok(Self { terminal, drawn: None })
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.drawn = Some(Instant::now());
        self.terminal.draw(draw).map(drop)
    }

    /// When the next frame may be drawn, at least `apart` after the last one.
    pub(super) fn next_frame(&self, apart: Duration) -> Instant {
        self.drawn.map_or_else(Instant::now, |drawn| drawn + apart)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste)
}

/// Gives the screen back as far as possible: there may be no terminal any more.
fn give_back() {
    let _ =
        execute!(stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Gives the screen back at a panic, so that its message is on the screen that was there before.
fn give_back_at_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}
