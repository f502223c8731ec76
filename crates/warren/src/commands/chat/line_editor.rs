//! The line editor for messages.

use std::path::PathBuf;

use anyhow::Context;
use rustyline::{
    Cmd, Config, Editor, Helper, KeyCode, KeyEvent, Modifiers,
    completion::Completer,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};

use crate::commands::private_file::PrivateFile;

/// The file of earlier lines.
const HISTORY: &str = "chat-history";

/// The most lines that are remembered.
const MOST_LINES: usize = 1_000;

/// The longest line that is remembered, in bytes.
const LONGEST: usize = 16 * 1024;

/// The typed input.
pub(super) enum LineInput {
    Text(String),
    /// Ctrl-C: the line is given up.
    Interrupted,
    /// Ctrl-D.
    End,
}

fn history_path() -> anyhow::Result<PathBuf> {
    let file = PrivateFile::of_user(HISTORY, "what is typed")?;
    file.make_directory()?;
    Ok(file.path().to_owned())
}

/// Reads lines from the terminal, and remembers them for this user.
pub(super) struct LineEditor {
    editor: Editor<Continuation, FileHistory>,
    /// The file of the remembered lines; `None` if there can be none.
    history: Option<PathBuf>,
}

impl LineEditor {
    pub(super) fn open() -> anyhow::Result<Self> {
        let config = Config::builder().max_history_size(MOST_LINES)?.history_ignore_dups(true)?;
        let config = config.bracketed_paste(true).build();
        let mut editor = Editor::with_config(config).context("the terminal cannot be used")?;
        editor.set_helper(Some(Continuation));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let history = history_path().ok();
        if let Some(history) = &history {
            // Before the first chat there is no such file.
            let _ = editor.load_history(history);
        }
        Ok(Self { editor, history })
    }

    /// The next text.
    ///
    /// # Errors
    /// When the terminal fails.
    pub(super) fn read(&mut self) -> anyhow::Result<LineInput> {
        match self.editor.readline("> ") {
            Ok(text) => {
                self.remember(&text);
                Ok(LineInput::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(LineInput::Interrupted),
            Err(ReadlineError::Eof) => Ok(LineInput::End),
            Err(error) => Err(error).context("the terminal failed"),
        }
    }

    fn remember(&mut self, text: &str) {
        if text.len() > LONGEST || text.trim().is_empty() {
            return;
        }
        // A history that cannot be written does not end the chat.
        if self.editor.add_history_entry(text).unwrap_or(false)
            && let Some(history) = &self.history
        {
            let _ = self.editor.append_history(history);
        }
    }
}

/// Continues a line that ends with a backslash in the next one.
struct Continuation;

impl Validator for Continuation {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match context.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Continuation {
    type Candidate = String;
}

impl Hinter for Continuation {
    type Hint = String;
}

impl Highlighter for Continuation {}

impl Helper for Continuation {}
