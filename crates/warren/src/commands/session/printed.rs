//! Events of an agent as text for people: the one form of `attach`, `history` and `--wait`.

use std::collections::VecDeque;

use base::plain;
use protocol::workspace::{AgentEvent, TurnOutcome};
use serde_json::Value;

use crate::commands::table;

/// The most characters that are shown of a tool's object and of its result.
const SHOWN: usize = 400;
/// The characters of a tool's line beside what it is used on.
const BESIDE: usize = 24;
/// The most tools in use that are remembered.
const TOOLS: usize = 64;

/// Prints an agent's events, one after the other.
#[derive(Debug)]
pub(super) struct EventPrinter {
    /// The most characters of a tool's line.
    width: usize,
    /// The most lines of a prompt that are shown.
    prompt_lines: usize,
    line: LastLine,
    /// Whether anything was printed.
    has_begun: bool,
    /// Whether a turn runs, and whether it has printed text.
    in_turn: bool,
    has_said: bool,
    /// The tools in use: id and name.
    tools: VecDeque<(String, String)>,
}

/// The kind of the last printed line.
#[derive(Debug, PartialEq)]
enum LastLine {
    Ended,
    /// Text of the agent, which may go on.
    Text,
    /// A tool in use, whose result may be added: its id.
    Tool(String),
}

impl EventPrinter {
    /// Prints whole prompts, and the objects of tools in lines of this many columns.
    pub(super) const fn new(width: usize) -> Self {
        Self {
            width,
            prompt_lines: usize::MAX,
            line: LastLine::Ended,
            has_begun: false,
            in_turn: false,
            has_said: false,
            tools: VecDeque::new(),
        }
    }

    /// Prints at most `prompt_lines` lines of each prompt.
    pub(super) fn with_prompt_lines(self, prompt_lines: usize) -> Self {
        Self { prompt_lines, ..self }
    }

    /// The text that an event adds.
    pub(super) fn event(&mut self, event: &AgentEvent) -> String {
        let text = match event {
            AgentEvent::TurnStarted { prompt, .. } => self.turn_started(prompt.as_deref()),
            AgentEvent::Text { text, delta, .. } => self.text(text, *delta),
            AgentEvent::Thinking { text } => {
                self.line(&format!("  ~ {}", cut(&one_line(text), SHOWN)))
            }
            AgentEvent::ToolStarted { id, name, input } => self.tool_started(id, name, input),
            AgentEvent::ToolFinished { id, ok, output } => self.tool_finished(id, *ok, output),
            AgentEvent::Notice { message } => self.warning(message),
            AgentEvent::TurnEnded { outcome, error, text, .. } => {
                self.turn_ended(*outcome, error.as_deref(), text.as_deref())
            }
        };
        self.has_begun |= !text.is_empty();
        text
    }

    /// A line of its own.
    pub(super) fn line(&mut self, line: &str) -> String {
        self.has_begun = true;
        format!("{}{line}\n", self.end_line())
    }

    /// A line of its own about something that the user should know.
    pub(super) fn warning(&mut self, words: &str) -> String {
        self.line(&format!("  ! {}", plain::lines(words)))
    }

    /// Ends an open line.
    pub(super) fn end_line(&mut self) -> &'static str {
        match std::mem::replace(&mut self.line, LastLine::Ended) {
            LastLine::Ended => "",
            LastLine::Text | LastLine::Tool(_) => "\n",
        }
    }

    fn turn_started(&mut self, prompt: Option<&str>) -> String {
        let mut text = match self.in_turn {
            true => self.warning("the end of this turn is not known: the server was restarted"),
            false => String::new(),
        };
        (self.in_turn, self.has_said) = (true, false);
        self.tools.clear();
        if let Some(prompt) = prompt {
            text += self.end_line();
            text += if self.has_begun { "\n" } else { "" };
            text += &quoted(&plain::lines(prompt), self.prompt_lines);
        }
        text
    }

    /// Prints the agent's text as it is. A renderer of Markdown has its place here.
    fn text(&mut self, text: &str, goes_on: bool) -> String {
        let text = plain::lines(text);
        let before = if goes_on && self.line == LastLine::Text { "" } else { self.end_line() };
        self.has_said = true;
        if !text.is_empty() {
            self.line = if text.ends_with('\n') { LastLine::Ended } else { LastLine::Text };
        }
        format!("{before}{text}")
    }

    fn tool_started(&mut self, id: &str, name: &str, input: &Value) -> String {
        let name = table::plain(name);
        let room = self.width.saturating_sub(BESIDE + name.chars().count()).clamp(8, SHOWN);
        let tool = format!("  → {name} {}", cut(&target(input), room));
        let text = format!("{}{}", self.end_line(), tool.trim_end());
        if self.tools.len() == TOOLS {
            self.tools.pop_front();
        }
        self.tools.push_back((id.to_owned(), name));
        self.line = LastLine::Tool(id.to_owned());
        text
    }

    /// Prints a result in the tool's own line, unless something else was printed since.
    fn tool_finished(&mut self, id: &str, ok: bool, output: &str) -> String {
        let is_own_line = matches!(&self.line, LastLine::Tool(open) if open == id);
        let known = self.tools.iter().position(|(tool, _)| tool == id);
        let name = known.and_then(|at| self.tools.remove(at)).map(|(_, name)| name);
        if is_own_line {
            self.line = LastLine::Ended;
        }
        match (ok, is_own_line) {
            (true, true) => " … ok\n".to_owned(),
            (true, false) => String::new(),
            (false, true) => format!(" … failed\n{}", self.failure("  ! ", output)),
            (false, false) => {
                let name = name.unwrap_or_else(|| "a tool".to_owned());
                self.failure(&format!("  ! {name} failed: "), output)
            }
        }
    }

    fn failure(&mut self, before: &str, output: &str) -> String {
        match one_line(output) {
            output if output.is_empty() && before.trim() == "!" => String::new(),
            output => self.line(&format!("{before}{}", cut(&output, SHOWN))),
        }
    }

    fn turn_ended(
        &mut self,
        outcome: TurnOutcome,
        error: Option<&str>,
        whole: Option<&str>,
    ) -> String {
        let mut text = match whole.filter(|_| !self.has_said) {
            Some(whole) => self.text(whole, false),
            None => String::new(),
        };
        (self.in_turn, self.has_said) = (false, false);
        text += &match outcome {
            TurnOutcome::Completed => self.end_line().to_owned(),
            TurnOutcome::Interrupted => self.warning("the turn was interrupted"),
            TurnOutcome::Failed => {
                let why = error.unwrap_or("the agent does not say why");
                self.warning(&format!("the turn failed: {why}"))
            }
        };
        text
    }
}

/// The object of a tool's use, in one line.
pub(super) fn brief(input: &Value) -> String {
    cut(&target(input), SHOWN)
}

/// The most telling argument of a tool, or all of them.
fn target(input: &Value) -> String {
    let telling =
        ["command", "file_path", "path", "notebook_path", "url", "pattern", "query", "description"];
    let words = telling.iter().find_map(|name| match &input[name] {
        Value::String(text) => Some(text.clone()),
        // A command line as a list of words.
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" "))
        }
        _ => None,
    });
    match (words, input) {
        (Some(words), _) => one_line(&words),
        (None, Value::Null) => String::new(),
        (None, input) => plain::line(&input.to_string()),
    }
}

/// The lines of a prompt, marked.
fn quoted(prompt: &str, most: usize) -> String {
    let prompt = prompt.trim_end();
    let mut lines = prompt.lines();
    let mut text: String = lines.by_ref().take(most).map(|line| format!("> {line}\n")).collect();
    match lines.count() {
        0 => {}
        1 => text.push_str("> … (1 more line)\n"),
        more => text.push_str(&format!("> … ({more} more lines)\n")),
    }
    text
}

fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    plain::line(&lines.collect::<Vec<_>>().join(" "))
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn begun(turn: u64, prompt: &str) -> AgentEvent {
        AgentEvent::TurnStarted { turn, prompt: Some(prompt.to_owned()) }
    }

    fn said(text: &str, delta: bool) -> AgentEvent {
        AgentEvent::Text { text: text.to_owned(), delta, unasked: false }
    }

    fn tool(id: &str, command: &str) -> AgentEvent {
        let input = json!({"command": command, "x": 1});
        AgentEvent::ToolStarted { id: id.to_owned(), name: "Bash".to_owned(), input }
    }

    fn done(id: &str, ok: bool, output: &str) -> AgentEvent {
        AgentEvent::ToolFinished { id: id.to_owned(), ok, output: output.to_owned() }
    }

    fn ended(outcome: TurnOutcome, error: Option<&str>, text: &str) -> AgentEvent {
        let (error, text) = (error.map(str::to_owned), Some(text.to_owned()));
        AgentEvent::TurnEnded { turn: 1, outcome, error, text }
    }

    fn printed(events: &[AgentEvent]) -> String {
        let mut printer = EventPrinter::new(80).with_prompt_lines(2);
        events.iter().map(|event| printer.event(event)).collect()
    }

    #[test]
    fn a_turn_reads_as_a_conversation() {
        let events = [
            begun(1, "Why?\nSay it."),
            said("Let me ", false),
            said("look.", true),
            tool("a", "ls\n-l"),
            done("a", true, "src"),
            said("Done\u{1b}[2J.", true),
            ended(TurnOutcome::Completed, None, "Let me look.Done."),
            begun(2, "Thanks"),
            ended(TurnOutcome::Completed, None, "All."),
        ];
        let expected = "> Why?\n> Say it.\nLet me look.\n  → Bash ls -l … ok\nDone\u{fffd}[2J.\n\n\
            > Thanks\nAll.\n";
        assert_eq!(printed(&events), expected);
    }

    #[test]
    fn a_turn_that_failed_says_why_and_one_without_an_end_that_it_has_none() {
        let events = [
            begun(1, "a"),
            ended(TurnOutcome::Failed, Some("exit 1"), ""),
            begun(2, "b"),
            said("half", false),
            ended(TurnOutcome::Interrupted, None, "half"),
            begun(3, "c"),
            said("cut", false),
            begun(4, "d"),
        ];
        let expected = "> a\n  ! the turn failed: exit 1\n\n> b\nhalf\n  ! the turn was interrupted\n\n\
            > c\ncut\n  ! the end of this turn is not known: the server was restarted\n\n> d\n";
        assert_eq!(printed(&events), expected);
    }

    #[test]
    fn a_tool_has_one_line_and_a_failure_its_reason() {
        let events = [
            tool("a", "one"),
            tool("b", "two"),
            done("a", true, ""),
            done("b", false, "no such\nfile"),
            tool("c", "three"),
            done("c", false, "no"),
            tool("d", "four"),
            done("d", false, ""),
        ];
        let expected = "  → Bash one\n  → Bash two … failed\n  ! no such file\n\
            \x20 → Bash three … failed\n  ! no\n  → Bash four … failed\n";
        assert_eq!(printed(&events), expected);
        let late = [tool("a", "one"), said("text", false), done("a", false, "no")];
        assert_eq!(printed(&late), "  → Bash one\ntext\n  ! Bash failed: no\n");
    }

    #[test]
    fn a_tools_line_fits_the_width_whatever_its_argument() {
        let long = "x".repeat(1000);
        for input in
            [json!({"command": long}), json!({"a": long}), json!({"command": ["sh", long]})]
        {
            let event =
                AgentEvent::ToolStarted { id: "a".to_owned(), name: "Bash".to_owned(), input };
            let line = printed(&[event, done("a", true, "")]);
            assert!(line.trim_end().chars().count() <= 80 && line.contains('…'), "{line}");
        }
    }

    #[test]
    fn a_long_prompt_is_cut_to_its_first_lines() {
        assert_eq!(printed(&[begun(1, "a\nb\nc\n")]), "> a\n> b\n> … (1 more line)\n");
        assert_eq!(printed(&[begun(1, "a\nb\nc\nd")]), "> a\n> b\n> … (2 more lines)\n");
    }

    #[test]
    fn no_more_tools_are_remembered_than_the_bound() {
        let mut printer = EventPrinter::new(80);
        for number in 0..3 * TOOLS {
            printer.event(&tool(&number.to_string(), "x"));
        }
        assert_eq!(printer.tools.len(), TOOLS);
        assert!(printer.event(&done("0", false, "no")).contains("a tool failed: no"));
    }
}
