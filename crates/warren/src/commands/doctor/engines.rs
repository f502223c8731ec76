//! The model servers that this machine runs itself: their programs, their models, the memory.

use std::path::PathBuf;

use super::finding::Finding;
use crate::commands::{
    model_engines::SurveyedEngine,
    words::{bytes, count},
};

/// The result of one `[[worker.engines]]` on this machine.
#[derive(Debug, Clone)]
pub(super) struct ModelEngine {
    /// Whether people named it. Otherwise it serves pulled models, if there are any.
    pub(super) is_named: bool,
    /// The program with its version, as far as it is known; or how to get it.
    pub(super) program: Result<(PathBuf, Option<String>), String>,
    /// The named files and folders that cannot be read, with the reason.
    pub(super) unreadable: Vec<(PathBuf, String)>,
    /// Models by name, with the memory that each takes while it is loaded, in bytes.
    pub(super) models: Vec<(String, u64)>,
    /// Files with no model to serve, with the reason.
    pub(super) passed_over: Vec<(PathBuf, String)>,
    /// The memory for all models together, in bytes.
    pub(super) memory: u64,
}

impl ModelEngine {
    /// The result for settings with which nothing can be started.
    pub(super) fn wrong(error: String) -> Self {
        Self {
            is_named: true,
            program: Err(error),
            unreadable: Vec::new(),
            models: Vec::new(),
            passed_over: Vec::new(),
            memory: 0,
        }
    }
}

impl From<SurveyedEngine> for ModelEngine {
    fn from(surveyed: SurveyedEngine) -> Self {
        let passed_over = surveyed.passed_over.into_iter();
        Self {
            is_named: surveyed.is_named,
            program: surveyed.program,
            unreadable: surveyed.unreadable,
            models: surveyed.models,
            passed_over: passed_over.map(|it| (it.path, it.reason)).collect(),
            memory: surveyed.memory,
        }
    }
}

const CHECK: &str = "model engine";
const FILES: &str = "model files";

/// How many files and models are named.
const MOST_NAMED: usize = 5;

pub(super) fn all(engines: &[ModelEngine]) -> Vec<Finding> {
    engines.iter().flat_map(one).collect()
}

fn one(engine: &ModelEngine) -> Vec<Finding> {
    let (program, version) = match &engine.program {
        Ok(found) => found,
        // Nobody asked for an engine.
        Err(_) if !engine.is_named && engine.models.is_empty() => return Vec::new(),
        Err(advice) if engine.is_named => {
            return vec![Finding::fault(CHECK, "it cannot be started", advice)];
        }
        Err(advice) => {
            let pulled = count(engine.models.len() as u64, "model");
            let found = format!("{pulled} could be served, and no program is there for it");
            return vec![Finding::note(CHECK, found, advice)];
        }
    };
    let version = version.as_ref().map(|version| format!(", {version}")).unwrap_or_default();
    let mut findings = vec![Finding::ok(CHECK, format!("{}{version}", program.display()))];
    findings.extend(engine.unreadable.iter().map(|(path, why)| {
        let advice = "is the path right, and may this user read it?";
        Finding::fault(FILES, format!("{}: {why}", path.display()), advice)
    }));
    findings.push(memory(engine));
    findings.extend(passed_over(engine));
    findings
}

/// Compares the models with the memory.
fn memory(engine: &ModelEngine) -> Finding {
    let room = bytes(engine.memory);
    if engine.models.is_empty() {
        let found = format!("no model to serve; there is memory for {room}");
        let advice = "get one with `warren model pull`, or name a folder with --models DIR";
        return Finding::note(FILES, found, advice);
    }
    let models = count(engine.models.len() as u64, "model");
    let too_large: Vec<_> =
        engine.models.iter().filter(|(_, need)| *need > engine.memory).collect();
    if !too_large.is_empty() {
        let names = too_large
            .iter()
            .take(MOST_NAMED)
            .map(|(name, need)| format!("{name} {}", bytes(*need)));
        let names = names.collect::<Vec<_>>().join(", ");
        let found = format!("{models}; larger than the memory of {room}: {names}");
        let advice = "take a smaller quantization or context, or set memory in [[worker.engines]]";
        return Finding::note(FILES, found, advice);
    }
    let sum: u64 = engine.models.iter().map(|(_, need)| need).sum();
    let together = if sum <= engine.memory {
        "all of them fit together".to_owned()
    } else {
        format!("together they take {}, so they take turns", bytes(sum))
    };
    Finding::ok(FILES, format!("{models}, memory for {room}: {together}"))
}

fn passed_over(engine: &ModelEngine) -> Option<Finding> {
    let all = &engine.passed_over;
    if all.is_empty() {
        return None;
    }
    let reasons =
        all.iter().take(MOST_NAMED).map(|(path, why)| format!("{}: {why}", path.display()));
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let files = count(all.len() as u64, "file");
    let found = format!("{files} passed over: {reasons}{more}");
    Some(Finding::note(FILES, found, "get a broken file again; others may be as you want them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    fn engine() -> ModelEngine {
        ModelEngine {
            is_named: true,
            program: Ok(("/opt/llama-server".into(), Some("version: 1".to_owned()))),
            unreadable: Vec::new(),
            models: vec![("a".to_owned(), 1 << 30), ("b".to_owned(), 2 << 30)],
            passed_over: Vec::new(),
            memory: 4 << 30,
        }
    }

    fn told(engine: &ModelEngine) -> String {
        one(engine).iter().map(|finding| finding.readable() + "\n").collect()
    }

    #[test]
    fn a_program_is_told_with_its_version_and_the_memory_of_its_models() {
        let text = told(&engine());
        assert!(text.contains("ok     model engine   /opt/llama-server, version: 1"), "{text}");
        assert!(text.contains("2 models, memory for 4.0 GiB: all of them fit together"), "{text}");
        let small = told(&ModelEngine { memory: 5 << 29, ..engine() });
        assert!(small.contains("together they take 3.0 GiB, so they take turns"), "{small}");
        let smaller = told(&ModelEngine { memory: 3 << 29, ..engine() });
        assert!(smaller.contains("larger than the memory of 1.5 GiB: b 2.0 GiB"), "{smaller}");
    }

    #[test]
    fn a_missing_program_is_a_fault_only_where_it_is_named() {
        let program = Err("get it".to_owned());
        let named = ModelEngine { program, ..engine() };
        assert_eq!(one(&named)[0].state, State::Fault);
        let usual = ModelEngine { is_named: false, ..named };
        assert_eq!(one(&usual)[0].state, State::Note);
        assert!(one(&ModelEngine { models: Vec::new(), ..usual }).is_empty());
    }

    #[test]
    fn files_are_told_with_the_reason_why_they_are_no_models() {
        let passed_over = (0..7).map(|number| (format!("/m/{number}").into(), "cut off".into()));
        let text = told(&ModelEngine { passed_over: passed_over.collect(), ..engine() });
        assert!(text.contains("7 files passed over: /m/0: cut off; /m/1"), "{text}");
        assert!(text.contains("and 2 more"), "{text}");
        let unreadable = vec![("/gone".into(), "it is not there".to_owned())];
        assert_eq!(one(&ModelEngine { unreadable, ..engine() })[1].state, State::Fault);
    }
}
