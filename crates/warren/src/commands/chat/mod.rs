//! `warren chat`: a conversation with a model.
//!
//! - [`command`]: what a line means
//! - [`conversation`]: questions and answers, and where the last ones are kept
//! - [`line_editor`]: the line in which a message is typed

mod command;
mod conversation;
mod line_editor;

use std::{
    fs::OpenOptions,
    io::{IsTerminal, Write, stdin, stdout},
    path::Path,
    time::Instant,
};

use anyhow::{Context, anyhow};
use clap::Args;
use client::Warren;
use daemon::ConfigFile;
use tokio::{
    runtime::{Builder, Runtime},
    signal::ctrl_c,
};

use self::{
    command::Line,
    conversation::Conversation,
    line_editor::{LineEditor, LineInput},
};
use super::{
    answer::{
        Answer, ChatServer, Parameters, Printer, Question, Style,
        chat_server::{post, remember_model},
        follow,
    },
    note, say,
    table::plain,
    words::count,
};
use crate::{
    exit::usage,
    system::{QuietTerminal, take_interrupts},
};

/// Talk with a model, in a terminal. The conversation is kept for --continue, in a file that only you can read
#[derive(Args)]
#[command(after_help = "\
Examples:
  warren chat
  warren chat --model qwen3:8b --system \"Answer in one sentence\"
  warren chat --continue
  warren chat --forget")]
pub(crate) struct Chat {
    /// Go on with the last conversation
    #[arg(long = "continue", short = 'c', conflicts_with = "forget")]
    goes_on: bool,
    /// Forget the last conversation, and end
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    server: ChatServer,
}

impl Chat {
    pub(crate) fn run(mut self, file: &ConfigFile) -> anyhow::Result<()> {
        if self.forget {
            let was_kept = Conversation::forget()?;
            let words =
                if was_kept { "the last conversation is forgotten" } else { "none was kept" };
            return Ok(say(words)?);
        }
        if !stdin().is_terminal() || !stdout().is_terminal() {
            let words = "a chat needs a terminal: `warren ask` answers one question without one";
            return Err(usage(anyhow!(words)));
        }
        let mut conversation = self.begin()?;
        let warren = self.server.warren(file)?;
        // A thread of its own, so that a connection that the server closes meanwhile is noticed at the prompt.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        conversation.model = runtime.block_on(self.parameters.choose_model(&warren))?;
        let talk = Talk {
            conversation,
            warren,
            parameters: self.parameters,
            style: self.style,
            files: Question::default(),
            last: None,
        };
        let ended = talk.run(&runtime);
        runtime.shutdown_background();
        ended
    }

    /// The conversation at its beginning. A continued one keeps its model and instructions, unless others are named.
    fn begin(&mut self) -> anyhow::Result<Conversation> {
        let mut conversation = Conversation::default();
        if self.goes_on {
            let none = || usage(anyhow!("no conversation is kept: `warren chat` begins one"));
            conversation = Conversation::last().ok_or_else(none)?;
            self.parameters.model.get_or_insert_with(|| conversation.model.clone());
        }
        conversation.system = self.parameters.system.take().or(conversation.system);
        Ok(conversation)
    }
}

/// The step after a line.
#[derive(PartialEq, Eq)]
enum Next {
    Line,
    Answer,
    End,
}

/// A running chat.
struct Talk {
    warren: Warren,
    parameters: Parameters,
    style: Style,
    conversation: Conversation,
    /// The files that go with the next message.
    files: Question,
    /// The last answer.
    last: Option<Answer>,
}

impl Talk {
    fn run(mut self, runtime: &Runtime) -> anyhow::Result<()> {
        let _quiet = QuietTerminal::new();
        // From here on Ctrl-C ends an answer, and never the process.
        let _interrupts = {
            let _inside = runtime.enter();
            take_interrupts()?
        };
        let mut editor = LineEditor::open()?;
        self.greet()?;
        loop {
            let line = match editor.read()? {
                LineInput::Text(text) => Line::read(&text),
                LineInput::Interrupted => {
                    note("Ctrl-D or /quit leaves");
                    continue;
                }
                LineInput::End => return Ok(()),
            };
            match self.take(line, runtime)? {
                Next::Line => {}
                Next::Answer => runtime.block_on(self.answer())?,
                Next::End => return Ok(()),
            }
        }
    }

    fn greet(&self) -> anyhow::Result<()> {
        let (model, server) = (plain(&self.conversation.model), self.warren.url());
        say(&format!("{model} at {server}. /help lists commands, Ctrl-D leaves."))?;
        if self.conversation.is_empty() {
            return Ok(());
        }
        let (question, answer) = self.conversation.last_turn();
        let questions = count(self.conversation.questions(), "message");
        say(&format!("The conversation goes on after {questions}:\n\n> {question}\n"))?;
        Printer::new(self.style).whole(&answer)
    }

    fn take(&mut self, line: Line, runtime: &Runtime) -> anyhow::Result<Next> {
        match line {
            Line::Nothing => {}
            Line::Message(text) => {
                let files = std::mem::take(&mut self.files);
                self.conversation.ask(&files.preceded_by(&text));
                return Ok(Next::Answer);
            }
            Line::Model(None) => runtime.block_on(self.list_models())?,
            Line::Model(Some(name)) => {
                say(&format!("{} answers from now on", plain(&name)))?;
                self.conversation.model = name;
            }
            Line::File(path) => self.attach(path.as_deref())?,
            Line::System(Some(text)) => self.conversation.system = Some(text),
            Line::System(None) => {
                say(self.conversation.system.as_deref().unwrap_or("there are no instructions"))?;
            }
            Line::Retry if self.conversation.retry() => return Ok(Next::Answer),
            Line::Retry => note("nothing was asked yet"),
            Line::Clear => {
                self.conversation.clear();
                self.files = Question::default();
                say("a new conversation")?;
            }
            Line::Save(path) => self.save(Path::new(&path)),
            Line::Usage => match &self.last {
                Some(answer) => say(&answer.usage())?,
                None => note("nothing was answered yet"),
            },
            Line::Help => say(&command::help())?,
            Line::Quit => return Ok(Next::End),
            Line::Wrong(words) => note(&words),
        }
        Ok(Next::Line)
    }

    /// Asks for the answer to the last question. A failure is shown, and the chat goes on.
    async fn answer(&mut self) -> anyhow::Result<()> {
        let mut printer = Printer::new(self.style).keeping();
        say("")?;
        let answered = tokio::select! {
            answered = self.ask(&mut printer) => Some(answered),
            // Dropping the answer hangs up, and so cancels the request.
            _ = ctrl_c() => None,
        };
        printer.finish()?;
        let text = printer.take_text();
        match answered {
            Some(Ok(answer)) => self.answered(&text, answer),
            Some(Err(error)) => self.failed(&error),
            None => {
                note("stopped");
                self.keep(&text);
            }
        }
        Ok(say("")?)
    }

    async fn ask(&self, printer: &mut Printer) -> anyhow::Result<Answer> {
        let body = self.parameters.body(&self.conversation.model, &self.conversation.messages());
        let began = Instant::now();
        follow(post(&self.warren, &body).await?, began, printer).await
    }

    fn answered(&mut self, text: &str, answer: Answer) {
        if answer.is_cut_off() {
            note("the answer ends at its limit of tokens: --max-tokens sets it");
        }
        if text.trim().is_empty() {
            note("the model answered without a word: /retry asks again");
        }
        remember_model(&self.warren.url(), &self.conversation.model);
        self.last = Some(answer);
        self.keep(text);
    }

    /// Keeps the text of an answer that was stopped: it belongs to the conversation, too.
    fn keep(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.conversation.answer(text);
        if let Err(error) = self.conversation.keep() {
            note(&format!("the conversation is not kept for --continue: {error:#}"));
        }
    }

    fn failed(&self, error: &anyhow::Error) {
        let words = format!("{error:#}");
        note(&format!("error: {words}"));
        note(if is_too_long(&words) {
            "the conversation may be too long for this model: /clear begins a new one, and /model \
             takes another model"
        } else {
            "/retry asks again"
        });
    }

    async fn list_models(&self) -> anyhow::Result<()> {
        match self.warren.model_ids().await {
            Ok(models) => {
                let mark = |model: &String| {
                    let mark = if *model == self.conversation.model { '*' } else { ' ' };
                    format!("{mark} {}", plain(model))
                };
                Ok(say(&models.iter().map(mark).collect::<Vec<_>>().join("\n"))?)
            }
            Err(error) => {
                note(&format!("error: {error}"));
                Ok(())
            }
        }
    }

    fn attach(&mut self, path: Option<&str>) -> anyhow::Result<()> {
        match path.map(|path| self.files.add(Path::new(path))) {
            Some(Ok(())) => Ok(say("it goes with your next message")?),
            Some(Err(error)) => {
                note(&format!("error: {error:#}"));
                Ok(())
            }
            None => {
                let was_empty = std::mem::take(&mut self.files).is_empty();
                Ok(say(if was_empty { "/file needs a path" } else { "no file goes with it" })?)
            }
        }
    }

    fn save(&self, path: &Path) {
        let saved = OpenOptions::new().write(true).create_new(true).open(path);
        let saved =
            saved.and_then(|mut file| file.write_all(self.conversation.markdown().as_bytes()));
        match saved.with_context(|| format!("{} cannot be written", path.display())) {
            Ok(()) => note(&format!("saved in {}", path.display())),
            Err(error) => note(&format!("error: {error:#}")),
        }
    }
}

/// Whether a server's words may say that a conversation does not fit the model. Backends agree on no code for it.
fn is_too_long(words: &str) -> bool {
    let words = words.to_lowercase();
    let is_about = ["context", "too long", "too many tokens", "maximum length", "prompt is"];
    is_about.iter().any(|about| words.contains(about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_the_length_are_recognised() {
        for words in [
            "This model's maximum context length is 4096 tokens",
            "the request exceeds the available context size",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ] {
            assert!(is_too_long(words), "{words}");
        }
        assert!(!is_too_long("no worker serves m"));
    }
}
