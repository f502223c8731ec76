//! The arguments and environment of the fake agent.

use std::{env, fs, path::PathBuf};

use serde_json::Value;

#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) args: Vec<String>,
    pub(super) cwd: PathBuf,
    state: PathBuf,
}

impl Setting {
    pub(super) fn new() -> Self {
        let mut args = env::args();
        let program = PathBuf::from(args.next().unwrap_or_default());
        let name = program.file_name().map(|name| name.to_string_lossy().into_owned());
        let beside = program.parent().map(|dir| dir.join("state"));
        Self {
            name: name.unwrap_or_default(),
            args: args.collect(),
            cwd: env::current_dir().expect("it is somewhere"),
            state: variable("CLAUDE_CONFIG_DIR")
                .map(PathBuf::from)
                .or(beside)
                .expect("it was started by a path"),
        }
    }

    pub(super) fn state(&self) -> PathBuf {
        self.state.clone()
    }

    pub(super) fn has(&self, arg: &str) -> bool {
        self.args.iter().any(|given| given == arg)
    }

    /// The value of `--flag=value`.
    pub(super) fn value(&self, flag: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(flag)?.strip_prefix('='))
    }

    /// The value of `--config=key=value`, with its TOML read as the JSON that it is here.
    pub(super) fn config(&self, key: &str) -> Option<Value> {
        let mut values = self
            .args
            .iter()
            .filter_map(|arg| arg.strip_prefix("--config=")?.strip_prefix(key)?.strip_prefix('='));
        values.next_back().and_then(|value| serde_json::from_str(value).ok())
    }

    /// The keys of all `--config=key=value`.
    pub(super) fn config_keys(&self) -> impl Iterator<Item = &str> {
        self.args.iter().filter_map(|arg| arg.strip_prefix("--config=")?.split('=').next())
    }

    /// A file of JSON that a variable or a flag names.
    pub(super) fn json(&self, path: Option<&str>) -> Value {
        let text = path.and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

#[expect(clippy::disallowed_methods, reason = "it is how the real ones are told")]
pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// A new id, as the real ones have them.
pub(super) fn new_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel has one");
    id.trim().to_owned()
}
