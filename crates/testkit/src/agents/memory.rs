//! The conversations of the fake agent, each a file.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::setting::{Setting, new_id};

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) id: String,
    file: PathBuf,
    cwd: PathBuf,
}

impl Memory {
    pub(super) fn begin(setting: &Setting, id: Option<&str>) -> Self {
        let id = id.map_or_else(new_id, str::to_owned);
        Self { file: file(setting, &id), id, cwd: setting.cwd.clone() }
    }

    /// An earlier conversation, if it was held in this directory.
    pub(super) fn find(setting: &Setting, id: &str) -> Option<Self> {
        let memory = Self::begin(setting, Some(id));
        memory.file.exists().then_some(memory)
    }

    /// All prompts so far.
    pub(super) fn prompts(&self) -> Vec<String> {
        self.of("user")
    }

    /// All answers so far.
    pub(super) fn said(&self) -> Vec<String> {
        self.of("assistant")
    }

    pub(super) fn tell(&self, text: &str) {
        self.write(&json!({
            "type": "user", "message": { "role": "user", "content": text },
            "sessionId": self.id, "cwd": self.cwd, "uuid": new_id(),
        }));
    }

    pub(super) fn say(&self, text: &str) {
        self.write(&json!({
            "type": "assistant",
            "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] },
            "sessionId": self.id, "cwd": self.cwd, "uuid": new_id(),
        }));
    }

    fn of(&self, kind: &str) -> Vec<String> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_kind = lines.filter(|line| line["type"] == kind);
        of_kind
            .map(|line| {
                let content = &line["message"]["content"];
                content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default().into()
            })
            .collect()
    }

    fn write(&self, line: &Value) {
        let dir = self.file.parent().expect("it is in a directory");
        fs::create_dir_all(dir).expect("the directory can be made");
        let file = OpenOptions::new().create(true).append(true).open(&self.file);
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.expect("a conversation can be kept");
    }
}

/// As Claude Code has it; the others keep theirs in the same way here.
fn file(setting: &Setting, id: &str) -> PathBuf {
    let projects = setting.state().join("projects").join(dashed(&setting.cwd));
    projects.join(format!("{id}.jsonl"))
}

fn dashed(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
