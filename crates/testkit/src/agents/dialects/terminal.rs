//! With a person at a terminal: each line is a prompt.

use std::{
    io::{self, BufRead as _, Write as _},
    process::exit,
};

use serde_json::Value;

use super::print;
use crate::agents::{
    memory::Memory,
    script::{End, Life, Voice, perform},
    setting::Setting,
    tools::Server,
};

pub(super) fn run(setting: &Setting) {
    let memory = setting.value("--resume").and_then(|id| Memory::find(setting, id));
    let memory = memory.unwrap_or_else(|| Memory::begin(setting, setting.value("--session-id")));
    print(&format!("fake {} {}", setting.name, setting.args.join(" ")));
    let mut life = Life::default();
    ready();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if perform(&line, &mut Terminal, setting, &memory, &mut life) == End::Interrupted {
            exit(130);
        }
        ready();
    }
    life.end(0);
}

fn ready() {
    let mut out = io::stdout().lock();
    if out.write_all(b"> ").and_then(|()| out.flush()).is_err() {
        exit(141);
    }
}

struct Terminal;

impl Voice for Terminal {
    fn say(&mut self, text: &str) {
        print(text);
    }

    fn uses(&mut self, tool: &str, _: &Value, _: bool, output: &str) {
        print(&format!("{tool}: {output}"));
    }

    fn server(&self, _: &Setting) -> Option<Server> {
        None
    }
}
