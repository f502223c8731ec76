//! A model that this machine can serve, and the program that serves it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use base::{Endpoints, ModelFacts};

/// A model file, and how its server is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineModel {
    /// The name that consumers use; no two have the same.
    pub name: String,
    /// Its file; the first one if it has several.
    pub file: PathBuf,
    /// The file with which it reads pictures.
    pub mmproj: Option<PathBuf>,
    /// The known facts about it.
    pub facts: ModelFacts,
    /// How much memory it takes while it is loaded, in bytes, as far as that can be told from its file.
    pub memory_bytes: u64,
    /// How many tokens its server is to have room for; `None`: the server's own choice.
    pub context: Option<u64>,
    /// How many requests its server is to answer at once; `None`: the server's own choice.
    pub parallel: Option<u32>,
    /// How many processors its server is to use; `None`: the server's own choice.
    pub threads: Option<u32>,
    /// The program that serves it.
    pub program: Arc<Program>,
    /// Arguments after those of the program, with the same placeholders.
    pub flags: Vec<String>,
    /// Whether it stays loaded even if another model needs the memory.
    pub keep: bool,
    /// After how long without a request it is unloaded; `None`: only when the memory is needed.
    pub ttl: Option<Duration>,
    /// The group that decides which models it may run beside.
    pub group: Option<Group>,
}

impl EngineModel {
    /// Whether a running server of one of these models can go on as a server of the other.
    pub(crate) fn starts_like(&self, other: &Self) -> bool {
        let of = |model: &Self| {
            let options = (model.context, model.parallel, model.threads, model.flags.clone());
            let files = (model.file.clone(), model.mmproj.clone(), model.facts.file_bytes);
            (files, options, Arc::clone(&model.program))
        };
        of(self) == of(other)
    }
}

/// A program that serves one model file over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name that people use: `llama-server`. Models of one name are lent together.
    pub name: String,
    /// The program and its arguments, with placeholders: `{model}`, `{port}`, `{host}`, `{name}`, `{context}`,
    /// `{mmproj}`, `{parallel}`, `{threads}`. An argument whose placeholder has no value is left out, together
    /// with the option before it (`--ctx-size`).
    pub command: Vec<String>,
    /// Variables beside those that every child gets.
    pub env: Vec<(String, String)>,
    /// The path that answers 200 once the model is loaded. `None`: `/health`, or `/v1/models` if the server has no
    /// `/health`.
    pub health: Option<String>,
    /// The endpoints that it serves; `None`: the first server that runs is asked.
    pub endpoints: Option<Endpoints>,
}

/// Models with a common rule about what may be loaded at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The rule for its models.
    pub rule: GroupRule,
}

/// The rule for the models of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupRule {
    /// At most one of them is loaded at a time.
    OneAtATime,
    /// They may be loaded together, but no other model may be loaded beside them.
    Alone,
}

impl Group {
    /// Whether models of these groups may not be loaded at the same time.
    pub(crate) fn exclude(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) if one.name == other.name => one.rule == GroupRule::OneAtATime,
            _ => [one, other].into_iter().flatten().any(|group| group.rule == GroupRule::Alone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, rule: GroupRule) -> Option<Group> {
        Some(Group { name: name.to_owned(), rule })
    }

    #[test]
    fn groups_say_which_models_may_run_together() {
        let (one, alone) = (GroupRule::OneAtATime, GroupRule::Alone);
        let cases = [
            (None, None, false),
            (group("a", one), None, false),
            (group("a", one), group("a", one), true),
            (group("a", one), group("b", one), false),
            (group("a", alone), group("a", alone), false),
            (group("a", alone), group("b", one), true),
            (group("a", alone), None, true),
        ];
        for (one, other, excluded) in cases {
            assert_eq!(Group::exclude(one.as_ref(), other.as_ref()), excluded, "{one:?} {other:?}");
            assert_eq!(Group::exclude(other.as_ref(), one.as_ref()), excluded, "{other:?} {one:?}");
        }
    }
}
