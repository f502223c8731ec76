//! `warren session history`.

use std::io::{IsTerminal, Write, stdout};

use clap::Args;
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::{
    SessionId,
    client::{GetHistory, History},
};

use crate::commands::{
    say_json_line,
    workspace::{WorkspaceServer, named},
};

/// So much is asked for at once.
const PAGE: u64 = 1024 * 1024;

/// Print what a session wrote
#[derive(Args)]
#[command(
    after_help = "On a terminal, what would move the cursor is left out; into a file or pipe it is \
    written as it is.\n\n\
    Examples:\n  \
    warren session history build | less -R\n  \
    warren session history build --bytes 1000000 > build.log"
)]
pub(super) struct PrintHistory {
    /// The session: its id, the beginning of it, or its name
    session: String,
    /// How much of its end, in bytes
    #[arg(long, value_name = "N", default_value_t = 65536)]
    bytes: u64,
    /// All that is still known, instead
    #[arg(long, conflicts_with = "bytes")]
    all: bool,
    /// Write it as it is to a terminal, too
    #[arg(long)]
    raw: bool,
    /// Print JSON: a line for each piece, the oldest first
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WorkspaceServer,
}

impl PrintHistory {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.place.connect(file).await?;
        let sessions = workspace.sessions(true).await?;
        let id = named(&mut workspace, &sessions, &self.session).await?.id;
        let most = if self.all { u64::MAX } else { self.bytes };
        for piece in newest(&mut workspace, id, most).await?.iter().rev() {
            self.print(piece)?;
        }
        Ok(())
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

/// The newest pieces, the newest first. What the server keeps is bounded, and so is this.
async fn newest(
    workspace: &mut Workspace,
    session_id: SessionId,
    most: u64,
) -> anyhow::Result<Vec<History>> {
    let (mut pieces, mut before_seq, mut left) = (Vec::new(), None, most);
    while left > 0 {
        let asked = GetHistory { session_id, before_seq, max_bytes: Some(left.min(PAGE)) };
        let piece = workspace.history(asked).await?;
        let (more, from, size) = (piece.more, piece.from_seq, piece.data.len() as u64);
        if size > 0 {
            pieces.push(piece);
        }
        // A server that sends nothing, or goes in circles, has no more.
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
