//! `warren session history`.

use std::io::{IsTerminal, Write, stdout};

use anyhow::anyhow;
use clap::Args;
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::{
    SessionId, SessionMode,
    client::{GetHistory, History},
};

use super::{conversation::Conversation, line_width, printed::EventPrinter};
use crate::{
    commands::{
        note, say_json_line,
        workspace::{WorkspaceServer, named, terms::called},
    },
    exit::usage,
};

/// The bytes that are asked for at once.
const PAGE: u64 = 1024 * 1024;
/// The usual number of bytes of a terminal's output that are printed.
const BYTES: u64 = 64 * 1024;
/// The most pages of a conversation that are read. A server keeps less.
const PAGES: usize = 1024;

/// Print the conversation with an agent, or what a terminal wrote
#[derive(Args)]
#[command(
    after_help = "Of an agent: its prompts, text and uses of tools, and how its turns ended; with --raw the lines \
    that its program wrote. Of a terminal: its output, on a terminal without what would move the cursor, \
    into a file or pipe as it was written.\n\n\
    Examples:\n  \
    warren session history reviewer --turns 3\n  \
    warren session history reviewer --raw --all > reviewer.jsonl\n  \
    warren session history build | less -R\n  \
    warren session history build --bytes 1000000 > build.log"
)]
pub(super) struct PrintHistory {
    /// The session: its id, the beginning of it, or its name
    session: String,
    /// Only the last N turns of an agent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["bytes", "all", "raw"])]
    turns: Option<u32>,
    /// How much of the end of the output or lines, in bytes [default: 65536]
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
    /// All output or lines that are still known, instead
    #[arg(long, conflicts_with = "bytes")]
    all: bool,
    /// Print the lines of an agent, or a terminal's output as it is
    ///
    /// Also to a terminal.
    #[arg(long)]
    raw: bool,
    /// Print JSON
    ///
    /// A line for each event of an agent, or for each piece of output, the oldest first.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: WorkspaceServer,
}

impl PrintHistory {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.server.connect(file).await?;
        let sessions = workspace.sessions(true).await?;
        let session = named(&mut workspace, &sessions, &self.session).await?;
        let is_terminal = session.mode == SessionMode::Pty;
        if !is_terminal && !self.raw && self.bytes.is_none() {
            if self.print_conversation(&mut workspace, session.id).await? {
                return Ok(());
            }
            note("[this server keeps no turns; these are the agent's lines]");
        } else if is_terminal && self.turns.is_some() {
            let words = format!("{} is a terminal, which has no turns", called(session));
            return Err(usage(anyhow!("{words}: --bytes says how much of its output")));
        }
        let most = if self.all { u64::MAX } else { self.bytes.unwrap_or(BYTES) };
        for piece in newest(&mut workspace, session.id, most).await?.iter().rev() {
            self.print(piece)?;
        }
        Ok(())
    }

    /// Prints the conversation with an agent. Returns whether the server keeps it.
    async fn print_conversation(
        &self,
        workspace: &mut Workspace,
        session_id: SessionId,
    ) -> anyhow::Result<bool> {
        let turns = self.turns.map_or(usize::MAX, |turns| turns as usize);
        let conversation = Conversation::newest(workspace, session_id, turns, PAGES).await?;
        let Some(mut conversation) = conversation else { return Ok(false) };
        if self.turns.is_some() {
            conversation.keep_last(turns);
        }
        if self.json {
            conversation.events.iter().try_for_each(say_json_line)?;
            return Ok(true);
        }
        let mut printer = EventPrinter::new(line_width());
        let text = conversation.print(&mut printer) + printer.end_line();
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(true)
    }

    fn print(&self, piece: &History) -> anyhow::Result<()> {
        if self.json {
            return Ok(say_json_line(piece)?);
        }
        let mut out = stdout().lock();
        if self.raw || !out.is_terminal() {
            out.write_all(piece.data.as_bytes())?;
        } else {
            out.write_all(base::plain::lines(&without_sequences(&piece.data)).as_bytes())?;
        }
        Ok(out.flush()?)
    }
}

/// The newest pieces, the newest first. The server keeps a bounded number, so this is bounded, too.
async fn newest(
    workspace: &mut Workspace,
    session_id: SessionId,
    most: u64,
) -> anyhow::Result<Vec<History>> {
    let (mut pieces, mut before_seq, mut left) = (Vec::new(), None, most);
    while left > 0 {
        let request = GetHistory { session_id, before_seq, max_bytes: Some(left.min(PAGE)) };
        let piece = workspace.history(request).await?;
        let (more, from, size) = (piece.more, piece.from_seq, piece.data.len() as u64);
        if size > 0 {
            pieces.push(piece);
        }
        // A server that sends nothing, or repeats itself, has no more.
        if !more || size == 0 || before_seq.is_some_and(|before| from >= before) {
            break;
        }
        (before_seq, left) = (Some(from), left.saturating_sub(size));
    }
    Ok(pieces)
}

/// The text without its control sequences, and with plain line ends.
fn without_sequences(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\u{1b}', Some('[')) => {
                let _ = rest.by_ref().skip(1).find(|c| matches!(c, '\u{40}'..='\u{7e}'));
            }
            ('\u{1b}', Some(']' | 'P' | '_' | '^' | 'X')) => {
                let mut before = ' ';
                let _ = rest.by_ref().find(|c| {
                    let ends = *c == '\u{7}' || (before, *c) == ('\u{1b}', '\\');
                    before = *c;
                    ends
                });
            }
            ('\u{1b}', Some('(' | ')' | '#')) => drop((rest.next(), rest.next())),
            ('\u{1b}', _) => drop(rest.next()),
            ('\r', Some('\n')) => {}
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_left_when_control_sequences_are_taken_out() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\r\n\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b\u{1b}(Bc\u{1b}=d\n";
        assert_eq!(without_sequences(text), "red\nabcd\n");
        for cut in ["\u{1b}", "\u{1b}[", "\u{1b}]0;t", "\u{1b}("] {
            assert_eq!(without_sequences(&format!("a{cut}")), "a", "{cut:?}");
        }
    }
}
