//! Codex, as recorded of 0.169, and its traps.

use protocol::workspace::{AgentEvent, TurnOutcome};
use serde_json::json;

use super::rig::{
    Rig, SECOND, completed, end, ends, events, failure, launch_in, notices, settings, text,
    tool_finished, tool_started,
};
use crate::agent::{Gateway, Output, Settings, Signal, Usage};

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn started(id: &str) -> String {
    format!("{{\"type\":\"thread.started\",\"thread_id\":\"{id}\"}}\n{{\"type\":\"turn.started\"}}")
}

fn message(text: &str) -> String {
    format!(
        r#"{{"type":"item.completed","item":{{"id":"item_9","type":"agent_message","text":"{text}"}}}}"#
    )
}

fn turn_completed(input: u64, output: u64) -> String {
    format!(
        r#"{{"type":"turn.completed","usage":{{"input_tokens":{input},"cached_input_tokens":0,"output_tokens":{output}}}}}"#
    )
}

fn whole_turn(input: u64, output: u64) -> String {
    [started(ID), message("Done."), turn_completed(input, output)].join("\n")
}

#[test]
fn a_whole_turn_with_tools_becomes_events_in_order() {
    let mut rig = Rig::new("codex");
    let launch = rig.start("--help me\nplease");
    assert_eq!(launch.stdin.as_deref(), Some(&b"--help me\nplease"[..]));
    assert!(!launch.keep_stdin_open);
    assert_eq!(launch.args.last().map(String::as_str), Some("-"));
    let lines = [
        started(ID),
        r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hm"}}"#.into(),
        r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","status":"in_progress"}}"#.into(),
        r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a\nb\n","exit_code":0,"status":"completed"}}"#.into(),
        r#"{"type":"item.completed","item":{"id":"item_2","type":"file_change","changes":[{"path":"a","kind":"update"}],"status":"completed"}}"#.into(),
        r#"{"type":"item.completed","item":{"id":"item_3","type":"mcp_tool_call","server":"team","tool":"send","arguments":{"to":"x"},"status":"failed","error":{"message":"no such member"}}}"#.into(),
        r#"{"type":"item.updated","item":{"id":"item_4","type":"todo_list","items":[]}}"#.into(),
        message("Two files."),
        turn_completed(500, 20),
    ];
    let outputs = rig.lines(&lines.join("\n"));
    assert_eq!(outputs[0], Output::Conversation(ID.to_owned()));
    assert_eq!(
        events(&outputs),
        [
            AgentEvent::Thinking { text: "hm".into() },
            tool_started("item_1", "command_execution", json!({"command":"ls"})),
            tool_finished("item_1", true, "a\nb\n"),
            tool_started(
                "item_2",
                "file_change",
                json!({"changes":[{"path":"a","kind":"update"}]})
            ),
            tool_finished("item_2", true, ""),
            tool_started("item_3", "team.send", json!({"to":"x"})),
            tool_finished("item_3", false, "no such member"),
            text("Two files.", false),
            completed("Two files."),
        ]
    );
    assert_eq!(end(&outputs).usage, Usage { input_tokens: 500, output_tokens: 20, cost_usd: None });
}

#[test]
fn usage_is_that_of_the_turn_though_the_program_counts_the_thread() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    rig.lines(&whole_turn(500, 20));
    rig.exit(0);
    let launch = rig.start("two");
    assert_eq!(launch.args[launch.args.len() - 3..], ["resume", ID, "-"]);
    let outputs = rig.lines(&whole_turn(1200, 50));
    assert_eq!(end(&outputs).usage, Usage { input_tokens: 700, output_tokens: 30, cost_usd: None });
}

#[test]
fn usage_of_a_thread_from_before_a_restart_counts_from_what_was_known() {
    let used = Usage { input_tokens: 500, output_tokens: 20, cost_usd: None };
    let mut rig = Rig::with("codex", Settings { used, ..settings() }, Some(ID));
    rig.start("two");
    let outputs = rig.lines(&whole_turn(1200, 50));
    assert_eq!(end(&outputs).usage.input_tokens, 700);
}

#[test]
fn a_threads_usage_is_stored_before_its_turn_ends_and_cleared_with_it() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    let outputs = rig.lines(&whole_turn(500, 20));
    let stored = Output::Used(Usage { input_tokens: 500, output_tokens: 20, cost_usd: None });
    let at = |wanted: &dyn Fn(&Output) -> bool| outputs.iter().position(wanted);
    let ended = at(&|output| matches!(output, Output::TurnEnded(_)));
    assert!(at(&|output| *output == stored).is_some_and(|at| Some(at) < ended), "{outputs:?}");
    rig.exit(0);
    // A turn that reports no usage changes nothing; another conversation begins at zero.
    rig.start("two");
    rig.lines(&started(ID));
    assert!(!rig.exit(1).iter().any(|output| matches!(output, Output::Used(_))));
    rig.start("three");
    rig.stderr("no rollout found\n");
    launch_in(&rig.exit(1));
    let outputs = rig.lines(&whole_turn(70, 7));
    let fresh = Usage { input_tokens: 70, output_tokens: 7, cost_usd: None };
    assert!(outputs.contains(&Output::Used(fresh)));
    assert_eq!(end(&outputs).usage, fresh);
}

/// As recorded of 0.169 at a gateway.
#[test]
fn its_complaint_about_a_gateways_unknown_model_is_dropped() {
    let line = r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for `tiny` not found. Defaulting to fallback metadata; this can degrade performance and cause issues."}}"#;
    let mut rig = Rig::new("codex");
    rig.start("hello");
    assert_eq!(notices(&rig.lines(&[&started(ID), line].join("\n"))).len(), 1);
    let gateway = Gateway {
        base_url: "http://127.0.0.1:9178".to_owned(),
        key: "k3y".into(),
        model: "tiny".to_owned(),
    };
    let mut rig = Rig::with("codex", Settings { gateway: Some(gateway), ..settings() }, None);
    rig.start("hello");
    assert_eq!(notices(&rig.lines(&[&started(ID), line].join("\n"))), Vec::<String>::new());
}

#[test]
fn an_error_of_its_models_server_is_told_without_the_json_around_it() {
    let mut rig = Rig::new("codex");
    rig.start("hello");
    let failed = r#"{"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"no such model\",\"type\":\"x\",\"param\":null,\"code\":null}}"}}"#;
    assert_eq!(failure(&rig.lines(&[&started(ID), failed].join("\n"))), "no such model");
    // Its exit changes nothing.
    assert_eq!(ends(&rig.exit(1)), []);
}

#[test]
fn a_resumed_thread_is_told_its_sandbox_again() {
    let mut rig = Rig::resuming("codex", ID);
    let args = rig.start("go on").args;
    assert!(args.contains(&r#"--config=sandbox_mode="workspace-write""#.to_owned()), "{args:?}");
}

#[test]
fn a_process_that_stays_after_its_answer_is_ended_and_the_next_waits_for_that() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    rig.prompt("two");
    let outputs = rig.lines(&whole_turn(1, 1));
    // The answer is there at once; the second turn begins, but no second process.
    assert_eq!(end(&outputs).text.as_deref(), Some("Done."));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Start(_))));
    assert_eq!(rig.pass(9 * SECOND), []);
    assert_eq!(rig.pass(SECOND), [Output::Signal(Signal::Term)]);
    assert_eq!(rig.pass(5 * SECOND), [Output::Kill]);
    assert_eq!(launch_in(&rig.exit(137)).stdin.as_deref(), Some(&b"two"[..]));
}

#[test]
fn reconnecting_for_ever_is_no_life() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    rig.lines(&started(ID));
    let mut outputs = Vec::new();
    for attempt in 0..100 {
        let line = format!(r#"{{"type":"error","message":"Reconnecting... {attempt}/5"}}"#);
        rig.line(&line);
        outputs.extend(rig.pass(10 * SECOND));
        if rig.turns.running_turn().is_none() {
            break;
        }
    }
    assert!(failure(&outputs).contains("600 s"));
    assert!(outputs.contains(&Output::Signal(Signal::Term)));
}

#[test]
fn a_complaint_before_the_end_is_the_reason() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    let outputs = rig.line(r#"{"type":"error","message":"stream disconnected"}"#);
    assert_eq!(notices(&outputs), ["stream disconnected"]);
    assert_eq!(failure(&rig.exit(1)), "stream disconnected (it ended with code 1)");
}

#[test]
fn an_unknown_thread_begins_anew_once() {
    let mut rig = Rig::resuming("codex", ID);
    rig.start("go on");
    rig.stderr("Error: thread/resume failed: no rollout found for thread id 01890a5d\n");
    let outputs = rig.exit(1);
    assert_eq!(ends(&outputs), []);
    assert!(!launch_in(&outputs).args.contains(&"resume".to_owned()));
    // The second refusal in a turn begins no third conversation.
    rig.stderr("no rollout found\n");
    assert!(failure(&rig.exit(1)).contains("no rollout found"));
}

#[test]
fn an_error_within_a_resumed_turn_is_no_refused_resume() {
    let mut rig = Rig::resuming("codex", ID);
    rig.start("go on");
    rig.lines(&started(ID));
    rig.stderr("session not found\n");
    failure(&rig.exit(1));
    assert_eq!(rig.turns.conversation(), Some(ID));
}

#[test]
fn an_interrupt_is_a_signal_and_ends_with_the_process() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    rig.lines(&started(ID));
    assert_eq!(rig.interrupt(), [Output::Signal(Signal::Int)]);
    let outputs = rig.exit(130);
    assert_eq!((end(&outputs).outcome, end(&outputs).error), (TurnOutcome::Interrupted, None));
}
