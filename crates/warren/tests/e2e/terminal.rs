//! A terminal in which the real binary runs: a pseudo-terminal, and a reader of what is drawn on it.

use std::{
    num::NonZeroU16,
    sync::{Arc, Mutex},
};

use pty_process::{Command, OwnedWritePty, Size, open};
use testkit::{DEADLINE, eventually, process::settings, within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Child,
    sync::watch,
};
use vt100::{MouseProtocolMode, Parser};

use crate::common::binary;

/// A running binary in a terminal of its own.
pub(crate) struct Terminal {
    keyboard: OwnedWritePty,
    screen: Arc<Mutex<Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
    drawn: watch::Receiver<()>,
    child: Child,
}

impl Terminal {
    /// Starts the binary in a terminal of 24 rows and 80 columns, with an environment without settings
    /// of Warren.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same, with these variables.
    pub(crate) fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, 80)).unwrap();
        let mut command = Command::new(binary()).args(args).env("TERM", "xterm-256color");
        for variable in settings() {
            command = command.env_remove(variable);
        }
        // There nothing can be kept: what is said once to each user is not said here.
        command = command.env("XDG_STATE_HOME", "/dev/null");
        for (name, value) in environment {
            command = command.env(name, value);
        }
        let child = command.kill_on_drop(true).spawn(pts).unwrap();
        let (mut output, keyboard) = pty.into_split();
        let screen = Arc::new(Mutex::new(Parser::new(size(24), size(80), 0)));
        let (draws, drawn) = watch::channel(());
        let parser = Arc::clone(&screen);
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let all = Arc::clone(&written);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            // The last reader's end is an error on Linux.
            while let Ok(count @ 1..) = output.read(&mut bytes).await {
                all.lock().unwrap().extend_from_slice(&bytes[..count]);
                parser.lock().unwrap().process(&bytes[..count]);
                draws.send_replace(());
            }
        });
        Self { keyboard, screen, written, drawn, child }
    }

    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// All lines that were ever written, including those that have scrolled away.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut tall = Parser::new(size(24), size(80), 10_000);
        tall.process(&self.written.lock().unwrap());
        let screen = tall.screen_mut();
        screen.set_scrollback(usize::MAX);
        let mut above = screen.scrollback();
        let mut lines = Vec::new();
        while above > 0 {
            screen.set_scrollback(above);
            lines.extend(screen.rows(0, 80).take(above.min(24)));
            above = above.saturating_sub(24);
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, 80));
        lines
    }

    /// Waits until the screen shows a text.
    pub(crate) async fn shows(&self, text: &str) {
        self.becomes(text, |screen| screen.contains(text)).await;
    }

    /// Waits until the screen no longer shows a text.
    pub(crate) async fn hides(&self, text: &str) {
        self.becomes(&format!("no {text}"), |screen| !screen.contains(text)).await;
    }

    async fn becomes(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let mut drawn = self.drawn.clone();
        let shown = async {
            while !fits(&self.screen()) {
                if drawn.changed().await.is_err() {
                    panic!("it ended without showing {what}:\n{}", self.screen());
                }
            }
        };
        if tokio::time::timeout(DEADLINE, shown).await.is_err() {
            panic!("{what} is not shown:\n{}", self.screen());
        }
    }

    /// Types.
    pub(crate) async fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Clicks with the left button on the first place that shows a text.
    pub(crate) async fn click(&mut self, text: &str) {
        let screen = self.screen();
        let place = screen.lines().enumerate().find_map(|(y, line)| {
            let at = line.find(text)?;
            Some((line[..at].chars().count() + 1, y + 1))
        });
        let (x, y) = place.unwrap_or_else(|| panic!("no {text} to click on:\n{screen}"));
        self.press(&format!("\u{1b}[<0;{x};{y}M\u{1b}[<0;{x};{y}m")).await;
    }

    /// Makes the window larger or smaller.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(size(rows), size(columns));
        self.keyboard.resize(Size::new(rows, columns)).unwrap();
    }

    /// Sends it a signal, by its name.
    pub(crate) async fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id().unwrap());
        let done = tokio::process::Command::new("sh").args(["-c", &command]).status().await;
        assert!(done.unwrap().success(), "{command} failed");
    }

    /// Waits for its end, with this exit code and the terminal as it was before.
    pub(crate) async fn ends(&mut self, code: i32) {
        let status = within("the end", self.child.wait()).await.unwrap();
        assert_eq!(status.code(), Some(code), "{}", self.screen());
        let given_back = async || {
            let parser = self.screen.lock().unwrap();
            let screen = parser.screen();
            !screen.alternate_screen()
                && !screen.bracketed_paste()
                && !screen.hide_cursor()
                && screen.mouse_protocol_mode() == MouseProtocolMode::None
        };
        eventually("the terminal being given back", DEADLINE, given_back).await;
    }
}

fn size(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).unwrap()
}
