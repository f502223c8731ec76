//! The fake agent's deeds in a turn.

use std::{
    process::{Command, Stdio, exit},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    dialects::print,
    memory::Memory,
    model,
    setting::{Setting, variable},
    tools,
};

/// How a dialect says what happens in a turn.
pub(super) trait Voice {
    fn say(&mut self, text: &str);

    fn uses(&mut self, tool: &str, input: &Value, ok: bool, output: &str);

    /// Asks for permission to use a tool. A dialect that cannot ask refuses.
    fn ask(&mut self, _tool: &str, _input: &Value) -> Answer {
        Answer::Denied("it cannot ask".to_owned())
    }

    /// Works for `time`; true if it was interrupted.
    fn work(&mut self, time: Option<Duration>) -> bool {
        pause(time);
        false
    }

    fn server(&self, setting: &Setting) -> Option<tools::Server>;
}

#[derive(Debug)]
pub(super) enum Answer {
    Allowed,
    Denied(String),
    Interrupted,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Done(String),
    Interrupted,
}

/// The state that outlives a turn.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) is_endless: bool,
    /// Said after the turn, which nobody asked for.
    pub(super) background: Option<String>,
}

impl Life {
    pub(super) fn end(&self, code: i32) -> ! {
        if self.is_endless {
            pause(None);
        }
        exit(code)
    }
}

pub(super) fn perform(
    prompt: &str,
    voice: &mut impl Voice,
    setting: &Setting,
    memory: &Memory,
    life: &mut Life,
) -> End {
    let before = memory.prompts();
    memory.tell(prompt);
    let last = prompt.trim().lines().last().unwrap_or_default();
    let mut answer = String::new();
    for act in last.split(';').map(str::trim).filter(|act| !act.is_empty()) {
        let Some(said) = step(act, voice, setting, &before, life) else {
            return End::Interrupted;
        };
        if !said.is_empty() {
            voice.say(&said);
            answer = said;
        }
    }
    memory.say(&answer);
    End::Done(answer)
}

/// Runs one command and returns its reply, unless it was interrupted.
fn step(
    act: &str,
    voice: &mut impl Voice,
    setting: &Setting,
    before: &[String],
    life: &mut Life,
) -> Option<String> {
    let (word, rest) = act.split_once(' ').unwrap_or((act, ""));
    let nothing = Some(String::new());
    match word {
        "say" => Some(rest.to_owned()),
        "recall" => Some(before.join(" | ")),
        "pid" => Some(std::process::id().to_string()),
        "args" => Some(setting.args.join(" ")),
        "env" => Some(variable(rest).unwrap_or_else(|| "unset".to_owned())),
        "ask" => asks(rest, voice),
        "use" => {
            voice.uses(rest, &json!({ "command": "ls" }), true, "a b");
            nothing
        }
        "mcp" => Some(match voice.server(setting) {
            Some(server) => server.call(rest),
            None => "no server of tools".to_owned(),
        }),
        "gateway" => Some(model::ask(setting)),
        "slow" => {
            let time = Duration::from_millis(rest.parse().expect("slow MILLISECONDS"));
            if voice.work(Some(time)) { None } else { nothing }
        }
        "wait" => {
            voice.work(None);
            None
        }
        "hang" => {
            pause(None);
            nothing
        }
        "garbage" => {
            print("Segmentation fault (not really) \u{1b}[31m");
            print("{\"type\":");
            print("[1,2,3]");
            print("{\"type\":\"of_tomorrow\",\"message\":7}");
            nothing
        }
        "flood" => {
            print(&"x".repeat(3 * 1024 * 1024));
            nothing
        }
        "crash" => {
            complain("fatal: the fake agent was told to crash");
            exit(3)
        }
        "never" => {
            ignore_term();
            life.is_endless = true;
            nothing
        }
        "background" => {
            life.background = Some(rest.to_owned());
            nothing
        }
        "daemonise" => Some(daemonise()),
        _ => Some(act.to_owned()),
    }
}

fn asks(tool: &str, voice: &mut impl Voice) -> Option<String> {
    let input = json!({ "command": "ls" });
    match voice.ask(tool, &input) {
        Answer::Allowed => {
            voice.uses(tool, &input, true, "a b");
            Some(format!("{tool} was allowed"))
        }
        Answer::Denied(why) => Some(format!("{tool} was denied: {why}")),
        Answer::Interrupted => None,
    }
}

#[expect(clippy::print_stderr, reason = "it is a command line")]
pub(super) fn complain(text: &str) {
    eprintln!("{text}");
}

/// Does nothing for that long, or for ever.
#[expect(clippy::disallowed_methods, reason = "this program has no runtime")]
pub(super) fn pause(time: Option<Duration>) {
    match time {
        Some(time) => std::thread::sleep(time),
        None => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
    }
}

/// Leaves a process behind, out of the session of ours.
#[expect(clippy::zombie_processes, reason = "that nobody waits for it is what it is for")]
fn daemonise() -> String {
    let mut command = Command::new("setsid");
    command.args(["sleep", "1000"]).stdin(Stdio::null());
    let child = command.spawn().expect("a process can be started");
    child.id().to_string()
}

/// From now on SIGTERM does nothing: tokio's handler takes it, and the handler is never polled.
fn ignore_term() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("there is a runtime");
    runtime.block_on(async {
        std::mem::forget(signal(SignalKind::terminate()).expect("a signal can be handled"));
    });
    std::mem::forget(runtime);
}
