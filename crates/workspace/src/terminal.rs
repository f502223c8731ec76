//! A command in a terminal of its own.

use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt as _, future::BoxFuture};
use process::{
    Child, ChildIo, Command, Exit, Handle, MOST_PER_READ, Stdio, TerminalReader, TerminalWriter,
};
use session::terminal::size::Size;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};
use tracing::Instrument as _;

use crate::{
    engine::{CommandLine, Engine, PermissionAnswer, TypingTime},
    host::EngineHost,
    refusal::Refusal,
    sessions::{Facts, Feed},
    users,
};

/// The most messages with keys that may wait for the program to read them. Further keys are refused.
const WAITING: usize = 1024;
/// The most bytes of keys that may wait. Further keys are refused.
const WAITING_BYTES: usize = 4 * 1024 * 1024;
/// If more messages than this wait, further keys are acknowledged only when they are typed
/// ([`TypingTime::Later`]).
const MUCH: usize = 256;
/// The same holds for further keys if more bytes than this wait.
const MUCH_BYTES: usize = 1024 * 1024;
/// While more bytes than this wait for the program to read them, its queries are not answered.
const MOST_ANSWERS: usize = 16 * 1024;
/// The output of an ended process counts as over when nothing has come for this long.
const DRAIN: Duration = Duration::from_millis(500);
/// The output of an ended process counts as over after this time, even if more comes: processes in the background may
/// keep the terminal open.
const LONGEST_DRAIN: Duration = Duration::from_secs(3);
/// After a read of fewer bytes than this, the buffer is freed.
const LITTLE: usize = 4096;
/// The byte that Ctrl-C types.
const INTERRUPT: &[u8] = b"\x03";
/// The marks around a pasted text, for programs that have turned on bracketed paste.
const PASTE: (&str, &str) = ("\x1b[200~", "\x1b[201~");

/// Starts a command in a terminal, as the session's user, in its working directory.
pub(crate) async fn start(
    host: &EngineHost,
    facts: &Facts,
    line: CommandLine,
    size: Size,
    feed: Feed,
) -> Result<Box<dyn Engine>, Refusal> {
    let run_as = users::user(&host.settings.run_as, facts.run_as_user.as_deref()).await?;
    let user = run_as.clone().map_or_else(users::current, Ok)?;
    let command = Command {
        id: facts.id.uuid(),
        program: line.program.into(),
        args: line.args.into_iter().map(OsString::from).collect(),
        env: process::clean_environment(&line.env, &user),
        working_dir: facts.working_dir.clone().into(),
        stdio: Stdio::Terminal { cols: size.cols(), rows: size.rows() },
        run_as,
        max_processes: host.settings.max_processes,
    };
    let child = host.supervisor.spawn(command).await;
    let child = child.map_err(|error| Refusal::failed(&error))?;
    let engine = TerminalEngine::new(child, feed, host.settings.stop_grace)?;
    Ok(Box::new(engine))
}

/// Continues with a command in a terminal that outlived an earlier daemon.
pub(crate) fn take_over(
    host: &EngineHost,
    child: Child,
    feed: Feed,
) -> Result<Box<dyn Engine>, Refusal> {
    Ok(Box::new(TerminalEngine::new(child, feed, host.settings.stop_grace)?))
}

/// A command that runs in a terminal.
struct TerminalEngine {
    handle: Handle,
    /// `None` once the terminal is closed. Typing and resizing hold the lock, so the terminal is not closed
    /// meanwhile.
    writer: Arc<Mutex<Option<TerminalWriter>>>,
    keys: mpsc::Sender<WaitingKeys>,
    /// The bytes that wait in `keys`.
    waiting: Arc<AtomicUsize>,
    /// Whether the processes have ended and all output was fed.
    over: watch::Receiver<bool>,
    grace: Duration,
    feed: Feed,
    /// The task that reads the terminal.
    watching: Mutex<Option<JoinHandle<()>>>,
}

/// Keys that wait for the terminal.
struct WaitingKeys {
    keys: Bytes,
    /// Notified when these keys are typed; `None` if their client does not wait.
    typed: Option<oneshot::Sender<()>>,
}

impl TerminalEngine {
    fn new(mut child: Child, feed: Feed, grace: Duration) -> Result<Self, Refusal> {
        let ChildIo::Terminal(terminal) = child.take_io() else {
            return Err(Refusal::Failed("it was started without a terminal".to_owned()));
        };
        feed.journal(&child.journal);
        let (reader, writer) = terminal.split();
        let (keys, typed) = mpsc::channel(WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let typing = tokio::spawn(
            pass_on(typed, writer.clone(), Arc::clone(&waiting)).instrument(feed.span()),
        );
        let (ending, over) = watch::channel(false);
        let mut engine = Self {
            handle: child.handle(),
            watching: Mutex::default(),
            writer: Arc::new(Mutex::new(Some(writer))),
            keys,
            waiting,
            over,
            grace,
            feed: feed.clone(),
        };
        let writer = Arc::clone(&engine.writer);
        let span = feed.span();
        let watch = Watch { child, reader, feed, grace, writer, typing, ending };
        engine.watching = Mutex::new(Some(tokio::spawn(watch.run().instrument(span))));
        Ok(engine)
    }
}

impl Engine for TerminalEngine {
    fn type_in(&self, keys: Bytes) -> Result<TypingTime, Refusal> {
        // The lock is held until the keys are typed or queued, so that keys of two clients are not
        // mixed.
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = self.waiting.load(Ordering::Acquire) == 0;
        match writer.as_ref().filter(|_| is_first) {
            Some(writer) => self.wait(left_of(writer, keys)),
            None => self.wait(keys),
        }
    }

    fn answer(&self, answer: Bytes) {
        if self.waiting.load(Ordering::Acquire) > MOST_ANSWERS {
            return;
        }
        if let Err(refusal) = self.type_in(answer) {
            tracing::debug!(%refusal, "an answer cannot be typed");
        }
    }

    fn prompt(&self, text: String) -> Result<Option<u64>, Refusal> {
        let takes_pastes = text.contains('\n') && self.feed.takes_pastes();
        self.type_in(Bytes::from(typed(&text, takes_pastes))).map(|_| None)
    }

    fn interrupt(&self) -> Result<(), Refusal> {
        self.type_in(Bytes::from_static(INTERRUPT)).map(drop)
    }

    fn permit(&self, _: PermissionAnswer) -> Result<(), Refusal> {
        Err(Refusal::invalid("a terminal asks for no leave"))
    }

    fn resize(&self, size: Size) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = &*writer
            && let Err(error) = writer.resize(size.cols(), size.rows())
        {
            tracing::debug!(%error, "a terminal cannot be resized");
        }
    }

    fn processes(&self) -> BoxFuture<'_, Vec<u32>> {
        async { self.handle.members().await.unwrap_or_default() }.boxed()
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        let watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        async {
            if let Some(watching) = watching {
                watching.abort();
                let _aborted = watching.await;
            }
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async {
            if let Err(error) = self.handle.stop(self.grace).await {
                tracing::debug!(%error, "a session cannot be stopped");
            }
            let mut over = self.over.clone();
            let ended = over.wait_for(|over| *over);
            // A process that is left after this time is held up by the kernel.
            let _late = timeout(DRAIN + LONGEST_DRAIN + self.grace, ended).await;
        }
        .boxed()
    }
}

impl TerminalEngine {
    /// Queues keys behind those that wait already, unless there are no keys.
    fn wait(&self, keys: Bytes) -> Result<TypingTime, Refusal> {
        let (length, waiting) = (keys.len(), &self.waiting);
        if length == 0 {
            return Ok(TypingTime::Now);
        }
        // Counted before the keys are queued, because the task that types them subtracts their length.
        let bytes = waiting.fetch_add(length, Ordering::AcqRel) + length;
        let (receipt, is_typed) = oneshot::channel();
        let is_much = bytes > MUCH_BYTES || WAITING - self.keys.capacity() > MUCH;
        let keys = WaitingKeys { keys, typed: is_much.then_some(receipt) };
        if bytes > WAITING_BYTES || self.keys.try_send(keys).is_err() {
            waiting.fetch_sub(length, Ordering::AcqRel);
            return Err(Refusal::invalid(
                "the program reads nothing: what was typed before waits still",
            ));
        }
        Ok(if is_much { TypingTime::Later(is_typed) } else { TypingTime::Now })
    }
}

/// Types as many keys as the terminal takes at once, and returns the rest.
fn left_of(writer: &TerminalWriter, mut keys: Bytes) -> Bytes {
    let typed = writer.try_write(&keys);
    // After an error nothing counts as typed; the task that types the rest meets the error again.
    keys.split_off(typed.unwrap_or(0))
}

/// The keys that type a prompt: its lines, and one Enter.
fn typed(text: &str, takes_pastes: bool) -> String {
    let text = text.replace("\r\n", "\n");
    let text = text.trim_end_matches('\n');
    if takes_pastes && text.contains('\n') {
        // The text must not contain the mark that ends the paste.
        let text = text.replace(PASTE.1, "").replace('\n', "\r");
        return format!("{}{text}{}\r", PASTE.0, PASTE.1);
    }
    format!("{}\r", text.replace('\n', "\r"))
}

/// Types the keys that wait, until the terminal takes no more.
async fn pass_on(
    mut waiting_keys: mpsc::Receiver<WaitingKeys>,
    writer: TerminalWriter,
    waiting: Arc<AtomicUsize>,
) {
    while let Some(WaitingKeys { keys, typed }) = waiting_keys.recv().await {
        let written = writer.write_all(&keys).await;
        waiting.fetch_sub(keys.len(), Ordering::Release);
        if let Err(error) = written {
            tracing::debug!(%error, "a terminal takes no keys any more");
            return;
        }
        if let Some(typed) = typed {
            // An error means that the client has gone.
            let _ = typed.send(());
        }
    }
}

/// Reads the output of a process until the process has ended, then cleans up.
struct Watch {
    child: Child,
    reader: TerminalReader,
    feed: Feed,
    grace: Duration,
    writer: Arc<Mutex<Option<TerminalWriter>>>,
    typing: JoinHandle<()>,
    ending: watch::Sender<bool>,
}

impl Watch {
    async fn run(mut self) {
        let mut buffer = BytesMut::new();
        let exit = self.read(&mut buffer).await;
        self.feed(&mut buffer).await;
        let _late = timeout(LONGEST_DRAIN, self.drain(&mut buffer)).await;
        self.feed(&mut buffer).await;
        // The journal goes with the last process, so its output is written to the history first.
        self.feed.written().await;
        // Background processes that are left are ended: their terminal is about to be closed.
        if let Err(error) = self.child.handle().stop(self.grace).await {
            tracing::debug!(%error, "a session cannot be stopped");
        }
        self.typing.abort();
        drop(self.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.feed.ended(words(exit), code(exit));
        let _nobody = self.ending.send(true);
    }

    /// Feeds the output until the process has ended. Output that was read last may still be in the buffer then.
    async fn read(&mut self, buffer: &mut BytesMut) -> Exit {
        loop {
            let read = tokio::select! {
                biased;
                read = self.reader.read(buffer) => read,
                exit = self.child.wait() => return exit,
            };
            match read {
                Ok(0) => return self.child.wait().await,
                Ok(_) => self.feed(buffer).await,
                Err(error) => {
                    tracing::warn!(session = %self.feed.session(), %error, "a terminal cannot be read");
                    return self.child.wait().await;
                }
            }
        }
    }

    /// Feeds the output that comes after the process has ended.
    async fn drain(&mut self, buffer: &mut BytesMut) {
        while let Ok(Ok(1..)) = timeout(DRAIN, self.reader.read(buffer)).await {
            self.feed(buffer).await;
        }
    }

    async fn feed(&self, buffer: &mut BytesMut) {
        let bytes = buffer.split().freeze();
        if bytes.len() < LITTLE {
            // Most sessions are idle most of the time, and should hold no buffer while they are.
            *buffer = BytesMut::new();
        }
        if !bytes.is_empty() {
            self.feed.output(bytes);
            self.feed.room(MOST_PER_READ).await;
        }
    }
}

fn words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(number) => format!("killed by signal {number}"),
        Exit::Lost => "lost: the supervisor of processes has ended".to_owned(),
    }
}

/// The exit code as shells report it: 128 plus the number of a signal.
fn code(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(number) => Some(128 + number),
        Exit::Lost => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_its_text_and_one_enter() {
        assert_eq!(typed("ls", true), "ls\r");
        assert_eq!(typed("ls\n", true), "ls\r");
        assert_eq!(typed("", false), "\r");
    }

    #[test]
    fn lines_are_pasted_where_the_program_wants_to_know_and_typed_where_not() {
        assert_eq!(typed("a\r\nb\n", false), "a\rb\r");
        assert_eq!(typed("a\nb", true), "\x1b[200~a\rb\x1b[201~\r");
    }

    #[test]
    fn pasted_text_cannot_end_the_paste() {
        assert_eq!(typed("a\n\x1b[201~rm", true), "\x1b[200~a\rrm\x1b[201~\r");
    }
}
