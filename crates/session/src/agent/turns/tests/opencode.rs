//! opencode, as recorded of 1.18, and its traps.

use protocol::workspace::TurnOutcome;
use serde_json::json;

use super::rig::{Rig, SECOND, end, events, failure, text, tool_finished, tool_started};
use crate::agent::{Output, Signal, Usage};

const ID: &str = "ses_4d1bc9ffbffeXYZ";

fn line(kind: &str, part: &str) -> String {
    format!(r#"{{"type":"{kind}","timestamp":1767225600000,"sessionID":"{ID}","part":{part}}}"#)
}

fn step_finish(reason: &str) -> String {
    let part = format!(
        r#"{{"id":"prt_3","type":"step-finish","reason":"{reason}","cost":0.25,"tokens":{{"input":100,"output":10,"reasoning":5,"cache":{{"read":1000,"write":0}}}}}}"#
    );
    line("step_finish", &part)
}

fn said(text: &str) -> String {
    line(
        "text",
        &format!(r#"{{"id":"prt_2","type":"text","text":"{text}","time":{{"start":1,"end":2}}}}"#),
    )
}

#[test]
fn a_whole_turn_with_a_tool_ends_with_the_process() {
    let mut rig = Rig::new("opencode");
    let launch = rig.start("list it");
    assert_eq!(launch.args, ["run", "--format=json"]);
    assert_eq!(launch.stdin.as_deref(), Some(&b"list it"[..]));
    let lines = [
        line("step_start", r#"{"id":"prt_0","type":"step-start"}"#),
        line(
            "tool_use",
            r#"{"id":"prt_1","callID":"call_1","type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a\n","title":"ls"}}"#,
        ),
        step_finish("tool-calls"),
        said("One file."),
        step_finish("stop"),
    ];
    let outputs = rig.lines(&lines.join("\n"));
    assert_eq!(outputs[0], Output::Conversation(ID.to_owned()));
    assert_eq!(
        events(&outputs),
        [
            tool_started("call_1", "bash", json!({"command":"ls"})),
            tool_finished("call_1", true, "a\n"),
            text("One file.", false),
        ]
    );
    let outputs = rig.exit(0);
    assert_eq!(end(&outputs).text.as_deref(), Some("One file."));
    let usage = Usage { input_tokens: 2200, output_tokens: 30, cost_usd: Some(0.5) };
    assert_eq!(end(&outputs).usage, usage);
    assert!(rig.start("more").args.contains(&format!("--session={ID}")));
}

#[test]
fn an_answer_without_an_exit_ends_the_turn_after_ten_seconds() {
    let mut rig = Rig::new("opencode");
    rig.start("hello");
    rig.lines(&[said("Hi."), step_finish("stop")].join("\n"));
    assert_eq!(rig.pass(9 * SECOND), []);
    let outputs = rig.pass(SECOND);
    assert_eq!(end(&outputs).outcome, TurnOutcome::Completed);
    assert_eq!(end(&outputs).text.as_deref(), Some("Hi."));
    assert_eq!(outputs[0], Output::Signal(Signal::Term));
}

#[test]
fn a_step_after_the_last_one_takes_its_time() {
    let mut rig = Rig::new("opencode");
    rig.start("hello");
    rig.lines(&[said("Hi."), step_finish("stop")].join("\n"));
    rig.pass(9 * SECOND);
    rig.line(&line("step_start", r#"{"type":"step-start"}"#));
    assert_eq!(rig.pass(60 * SECOND), []);
}

#[test]
fn a_good_end_with_nothing_said_is_a_failure() {
    let mut rig = Rig::new("opencode");
    rig.start("delete x");
    rig.line(&line("tool_use", r#"{"callID":"call_1","type":"tool","tool":"bash","state":{"status":"error","input":{},"error":"The user rejected permission to use this specific tool call."}}"#));
    assert!(failure(&rig.exit(0)).contains("without an answer"));
}

#[test]
fn an_error_is_the_reason() {
    let mut rig = Rig::new("opencode");
    rig.start("hello");
    rig.line(&format!(r#"{{"type":"error","timestamp":1,"sessionID":"{ID}","error":{{"name":"ProviderAuthError","data":{{"message":"no key"}}}}}}"#));
    assert_eq!(failure(&rig.exit(1)), "ProviderAuthError: no key (it ended with code 1)");
}
