//! Gemini CLI, as recorded of 0.61, and its traps.

use serde_json::json;

use super::rig::{
    Rig, completed, end, events, failure, notices, text, tool_finished, tool_started,
};
use crate::agent::{Output, Usage};

const ID: &str = "7c1f5a3e-1111-4222-8333-444455556666";

fn init() -> String {
    format!(
        r#"{{"type":"init","timestamp":"2026-01-01T00:00:00Z","session_id":"{ID}","model":"gemini-pro"}}"#
    )
}

fn chunk(text: &str) -> String {
    format!(
        r#"{{"type":"message","timestamp":"t","role":"assistant","content":"{text}","delta":true}}"#
    )
}

const RESULT: &str = r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":120,"input_tokens":100,"output_tokens":20,"cached":0,"duration_ms":900,"tool_calls":1}}"#;

#[test]
fn a_whole_turn_with_a_tool_becomes_events_in_order() {
    let mut rig = Rig::new("gemini");
    let launch = rig.start("read it");
    assert_eq!(launch.stdin.as_deref(), Some(&b"read it"[..]));
    assert!(launch.args.contains(&"--output-format=stream-json".to_owned()));
    let lines = [
        init(),
        r#"{"type":"message","timestamp":"t","role":"user","content":"read it"}"#.into(),
        chunk("I shall "),
        chunk("read."),
        r#"{"type":"tool_use","timestamp":"t","tool_name":"read_file","tool_id":"read-1","parameters":{"path":"a"}}"#.into(),
        r#"{"type":"tool_result","timestamp":"t","tool_id":"read-1","status":"success","output":"hello"}"#.into(),
        chunk("It says "),
        chunk("hello."),
        RESULT.into(),
    ];
    let outputs = rig.lines(&lines.join("\n"));
    assert_eq!(outputs[0], Output::Conversation(ID.to_owned()));
    assert_eq!(
        events(&outputs),
        [
            text("I shall ", true),
            text("read.", true),
            tool_started("read-1", "read_file", json!({"path":"a"})),
            tool_finished("read-1", true, "hello"),
            text("It says ", true),
            text("hello.", true),
            completed("It says hello."),
        ]
    );
    assert_eq!(end(&outputs).usage, Usage { input_tokens: 100, output_tokens: 20, cost_usd: None });
    rig.exit(0);
    assert!(rig.start("more").args.contains(&format!("--resume={ID}")));
}

#[test]
fn a_wrong_key_is_told_in_plain_text_and_that_is_the_reason() {
    let mut rig = Rig::new("gemini");
    rig.start("hello");
    let outputs = rig.line("Please set an Auth method in your settings.json");
    assert!(notices(&outputs)[0].contains("Please set an Auth method"));
    let why = failure(&rig.exit(41));
    assert!(why.contains("code 41") && why.contains("Please set an Auth method"), "{why}");
}

#[test]
fn a_result_that_is_an_error_fails_the_turn() {
    let mut rig = Rig::new("gemini");
    rig.start("hello");
    let line = r#"{"type":"result","timestamp":"t","status":"error","error":{"type":"Error","message":"quota exceeded"},"stats":{}}"#;
    assert_eq!(failure(&rig.line(line)), "quota exceeded");
}
