//! The meaning of a line of a chat: a message, or a command that begins with a slash.

/// The commands and their effects.
pub(super) const COMMANDS: [(&str, &str); 9] = [
    ("/model [NAME]", "ask this model from now on; without a name, list them"),
    ("/file [PATH]", "add a picture or a text to the next message; alone: none"),
    ("/system [TEXT]", "instructions for the model; without a text, show them"),
    ("/retry", "ask the last message again"),
    ("/clear", "begin a new conversation"),
    ("/save PATH", "write the conversation into a new file, as Markdown"),
    ("/usage", "how many tokens the last answer took, and how long"),
    ("/help", "this list"),
    ("/quit", "leave; Ctrl-D does the same"),
];

/// The meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Nothing,
    Message(String),
    Model(Option<String>),
    File(Option<String>),
    System(Option<String>),
    Retry,
    Clear,
    Save(String),
    Usage,
    Help,
    Quit,
    /// An unknown or incomplete command, with the words for the user.
    Wrong(String),
}

impl Line {
    /// The meaning of a typed text. A text that begins with a blank is always a message; so is one of several lines.
    pub(super) fn read(typed: &str) -> Self {
        let text = typed.replace("\\\n", "\n");
        if text.trim().is_empty() {
            return Self::Nothing;
        }
        let Some(command) = text.strip_prefix('/') else {
            return Self::Message(text.trim().to_owned());
        };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
        match (name, rest) {
            ("model", name) => Self::Model(name),
            ("file", path) => Self::File(path),
            ("system", text) => Self::System(text),
            ("retry", None) => Self::Retry,
            ("clear", None) => Self::Clear,
            ("save", Some(path)) => Self::Save(path),
            ("save", None) => Self::Wrong("/save needs a file: /save notes.md".to_owned()),
            ("usage", None) => Self::Usage,
            ("help" | "?", None) => Self::Help,
            ("quit" | "exit" | "bye", None) => Self::Quit,
            (name, _) => Self::Wrong(format!(
                "there is no command /{name} of this form: /help lists them; a message that begins \
                 with a slash is sent with a blank before it"
            )),
        }
    }
}

/// The commands as text.
pub(super) fn help() -> String {
    let command = |(name, what): &(&str, &str)| format!("  {name:<15} {what}");
    let commands: Vec<String> = COMMANDS.iter().map(command).collect();
    format!(
        "{}\n  A line goes on in the next one after \\ at its end, or after Alt-Enter.\n  \
         Ctrl-C stops an answer.",
        commands.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            ("  ", Line::Nothing),
            ("hello\\\nyou ", Line::Message("hello\nyou".to_owned())),
            (" /etc/passwd?", Line::Message("/etc/passwd?".to_owned())),
            ("/model", Line::Model(None)),
            ("/model  qwen3:8b ", Line::Model(some("qwen3:8b"))),
            ("/system be\nbrief", Line::System(some("be\nbrief"))),
            ("/save a b.md", Line::Save("a b.md".to_owned())),
            ("/exit", Line::Quit),
        ];
        for (typed, line) in cases {
            assert_eq!(Line::read(typed), line, "{typed}");
        }
        for wrong in ["/save", "/etc/passwd", "/clear all"] {
            assert!(matches!(Line::read(wrong), Line::Wrong(_)), "{wrong}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for (name, _) in COMMANDS {
            let typed = name.replace(['[', ']'], "");
            assert!(!matches!(Line::read(&typed), Line::Wrong(_) | Line::Message(_)), "{name}");
        }
        assert!(help().lines().all(|line| line.len() <= 80), "{}", help());
    }
}
