//! SIGTERM and SIGINT: the first signal drains the server, the second ends it at once. SIGHUP: the configuration is
//! read again. On Windows, Ctrl-C and Ctrl-Break at the console and the console's end take the place of SIGTERM and
//! SIGINT.

use std::{
    io::{IsTerminal, stderr, stdin, stdout},
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::system::{EndSignals, HangUpSignal};

/// How long a process may take to tell its clients of the end, after the second signal.
const HASTE: Duration = Duration::from_secs(2);

/// A request to a server or a worker to end. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    drain: CancellationToken,
    at_once: CancellationToken,
    forced: CancellationToken,
}

impl Stop {
    /// A stop that nobody has asked for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for an end. Requests in flight may finish.
    pub fn ask(&self) {
        self.drain.cancel();
    }

    /// Asks for an end at once. Requests in flight end, too.
    pub fn ask_at_once(&self) {
        self.at_once.cancel();
        self.drain.cancel();
    }

    /// Cancelled when the end is asked for: nothing new begins.
    #[must_use]
    pub fn drain(&self) -> &CancellationToken {
        &self.drain
    }

    /// Cancelled when requests in flight end, too.
    #[must_use]
    pub fn at_once(&self) -> &CancellationToken {
        &self.at_once
    }

    /// Whether a second signal cut off unfinished work. Then the process should report a failure.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.forced.is_cancelled()
    }
}

/// A stop by signals. The first SIGTERM or SIGINT asks for an end, the second for an end at once. With the third, or a
/// moment after the second, the process exits.
///
/// # Errors
/// When the process cannot listen to signals.
pub fn stop() -> std::io::Result<Stop> {
    stop_after(|_| std::future::ready(()))
}

/// The signal that ends a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGTERM: a service manager, or another program.
    Terminate,
    /// SIGINT: Ctrl-C.
    Interrupt,
}

/// A stop by signals, as [`stop`] makes it. Between the first signal and the stop, `before` runs, to settle open
/// decisions. A second signal does not wait for it.
///
/// # Errors
/// When the process cannot listen to signals.
pub fn stop_after<F: Future<Output = ()> + Send + 'static>(
    before: impl FnOnce(EndSignal) -> F + Send + 'static,
) -> std::io::Result<Stop> {
    let mut signals = EndSignals::new()?;
    let stop = Stop::new();
    let ending = stop.clone();
    tokio::spawn(async move {
        let first = signals.next().await;
        if !ending.drain.is_cancelled() {
            tokio::select! {
                () = before(first) => {
                    ending.ask();
                    signals.next().await;
                }
                _second = signals.next() => {}
            }
        }
        tracing::warn!("ended by a second signal");
        ending.forced.cancel();
        ending.ask_at_once();
        let _third = timeout(HASTE, signals.next()).await;
        end();
    });
    Ok(stop)
}

/// A token that is cancelled at the first SIGTERM or SIGINT. At the second, the process exits.
///
/// # Errors
/// When the process cannot listen to signals.
pub fn shutdown() -> std::io::Result<CancellationToken> {
    let mut signals = EndSignals::new()?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping: what is in flight may finish; a second signal ends it");
        stop.cancel();
        signals.next().await;
        tracing::warn!("ended by a second signal");
        end();
    });
    Ok(token)
}

/// The meaning of a SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangUp {
    /// Somebody wants the configuration to be read again.
    Reload,
    /// The terminal at which the process was started is gone.
    TerminalGone,
}

/// The hang-ups of this process.
#[derive(Debug)]
pub struct HangUps {
    signal: HangUpSignal,
    /// Whether the process was started at a terminal.
    had_terminal: bool,
}

impl HangUps {
    /// Listens to SIGHUP: from now on, it does not end this process.
    ///
    /// # Errors
    /// When the process cannot listen to signals.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { signal: HangUpSignal::new()?, had_terminal: has_terminal() })
    }

    /// Waits for the next one, and tells its meaning.
    pub async fn next(&mut self) -> HangUp {
        self.signal.next().await;
        match self.had_terminal && !has_terminal() {
            true => HangUp::TerminalGone,
            false => HangUp::Reload,
        }
    }
}

/// Whether the process is at a terminal that is still open.
fn has_terminal() -> bool {
    stdin().is_terminal() || stdout().is_terminal() || stderr().is_terminal()
}

fn end() {
    // `exit` runs no destructors, so the log's guard would not write the last lines.
    crate::telemetry::log::finish();
    std::process::exit(1);
}
