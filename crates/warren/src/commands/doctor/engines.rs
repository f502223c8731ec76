//! The model servers that this machine runs itself: their programs, their models, the memory.

use super::finding::Finding;
use crate::commands::{
    model_engines::SurveyedEngine,
    words::{bytes, count},
};

/// The result for settings with which nothing can be started.
pub(super) fn wrong(error: String) -> SurveyedEngine {
    SurveyedEngine {
        is_named: true,
        program: Err(error),
        unreadable: Vec::new(),
        models: Vec::new(),
        passed_over: Vec::new(),
        memory: 0,
    }
}

const CHECK: &str = "model engine";
const FILES: &str = "model files";

/// How many files and models are named.
const MOST_NAMED: usize = 5;

pub(super) fn all(engines: &[SurveyedEngine]) -> Vec<Finding> {
    engines.iter().flat_map(one).collect()
}

fn one(engine: &SurveyedEngine) -> Vec<Finding> {
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
fn memory(engine: &SurveyedEngine) -> Finding {
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

fn passed_over(engine: &SurveyedEngine) -> Option<Finding> {
    let all = &engine.passed_over;
    if all.is_empty() {
        return None;
    }
    let reasons =
        all.iter().take(MOST_NAMED).map(|it| format!("{}: {}", it.path.display(), it.reason));
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
    use models::shelf::PassedOver;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn engine() -> SurveyedEngine {
        SurveyedEngine {
            is_named: true,
            program: Ok(("/opt/llama-server".into(), Some("version: 1".to_owned()))),
            unreadable: Vec::new(),
            models: vec![("a".to_owned(), 1 << 30), ("b".to_owned(), 2 << 30)],
            passed_over: Vec::new(),
            memory: 4 << 30,
        }
    }

    fn finding_of(engine: &SurveyedEngine) -> String {
        one(engine).iter().map(|finding| finding.readable() + "\n").collect()
    }

    #[test]
    fn a_program_is_told_with_its_version_and_the_memory_of_its_models() {
        let text = finding_of(&engine());
        assert!(text.contains("ok     model engine   /opt/llama-server, version: 1"), "{text}");
        assert!(text.contains("2 models, memory for 4.0 GiB: all of them fit together"), "{text}");
        let small = finding_of(&SurveyedEngine { memory: 5 << 29, ..engine() });
        assert!(small.contains("together they take 3.0 GiB, so they take turns"), "{small}");
        let smaller = finding_of(&SurveyedEngine { memory: 3 << 29, ..engine() });
        assert!(smaller.contains("larger than the memory of 1.5 GiB: b 2.0 GiB"), "{smaller}");
    }

    #[test]
    fn a_missing_program_is_a_fault_only_where_it_is_named() {
        let program = Err("get it".to_owned());
        let named = SurveyedEngine { program, ..engine() };
        assert_eq!(one(&named)[0].state, State::Fault);
        let usual = SurveyedEngine { is_named: false, ..named };
        assert_eq!(one(&usual)[0].state, State::Note);
        assert!(one(&SurveyedEngine { models: Vec::new(), ..usual }).is_empty());
    }

    #[test]
    fn files_are_told_with_the_reason_why_they_are_no_models() {
        let passed_over = (0..7).map(|number| PassedOver {
            path: format!("/m/{number}").into(),
            reason: "cut off".to_owned(),
            is_arriving: false,
        });
        let text = finding_of(&SurveyedEngine { passed_over: passed_over.collect(), ..engine() });
        assert!(text.contains("7 files passed over: /m/0: cut off; /m/1"), "{text}");
        assert!(text.contains("and 2 more"), "{text}");
        let unreadable = vec![("/gone".into(), "it is not there".to_owned())];
        assert_eq!(one(&SurveyedEngine { unreadable, ..engine() })[1].state, State::Fault);
    }
}
