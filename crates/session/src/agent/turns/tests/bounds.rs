//! Each bound is reached by a test.

use super::rig::{Rig, asks, end, failure, notices, written};
use crate::agent::{
    Input, MAX_LINE, MAX_PENDING, MAX_PROMPT, MAX_QUEUED, MAX_QUEUED_BYTES, Output, TurnsError,
};

fn prompt(text: String) -> Input {
    Input::Prompt { text }
}

fn ask(id: usize, input: &str) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"r{id}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"{input}"}}}}}}"#
    )
}

#[test]
fn as_many_prompts_wait_as_may_and_no_more() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    for _ in 0..MAX_QUEUED {
        rig.prompt("more");
    }
    assert_eq!(rig.handle(prompt("too much".into())), Err(TurnsError::QueueFull));
    assert_eq!(rig.turns.queued(), MAX_QUEUED);
}

#[test]
fn the_prompts_that_wait_have_so_many_bytes_together_and_no_more() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    let long = "x".repeat(MAX_PROMPT);
    (0..MAX_QUEUED_BYTES / MAX_PROMPT).for_each(|_| drop(rig.prompt(&long)));
    assert_eq!(rig.handle(prompt("x".into())), Err(TurnsError::QueueTooLong));
}

#[test]
fn a_prompt_is_neither_empty_nor_too_long() {
    let mut rig = Rig::new("codex");
    assert_eq!(rig.handle(prompt(" \n".into())), Err(TurnsError::EmptyPrompt));
    let bytes = MAX_PROMPT + 1;
    let too_long = rig.handle(prompt("x".repeat(bytes)));
    assert_eq!(too_long, Err(TurnsError::PromptTooLong { bytes }));
    rig.handle(prompt("x".repeat(MAX_PROMPT))).unwrap();
}

#[test]
fn as_many_permissions_wait_as_may_and_the_next_is_refused() {
    let mut rig = Rig::new("claude");
    rig.start("one");
    for id in 0..MAX_PENDING {
        assert_eq!(asks(&rig.line(&ask(id, "ls"))).len(), 1);
    }
    let outputs = rig.line(&ask(MAX_PENDING, "ls"));
    assert_eq!(asks(&outputs), Vec::<String>::new());
    assert_eq!(written(&outputs)[0]["response"]["response"]["behavior"], "deny");
    assert_eq!((rig.turns.pending().len(), notices(&outputs).len()), (MAX_PENDING, 1));
}

#[test]
fn permissions_together_take_only_so_much_memory() {
    let mut rig = Rig::new("claude");
    rig.start("one");
    let long = "x".repeat(MAX_LINE - 1024);
    let open = (0..8).filter(|id| !asks(&rig.line(&ask(*id, &long))).is_empty()).count();
    assert_eq!(open, 4);
}

#[test]
fn a_line_that_is_too_long_is_told_and_not_read() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    let line = format!(
        r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{}"}}}}"#,
        "x".repeat(MAX_LINE)
    );
    let outputs = rig.line(&line);
    assert_eq!((outputs.len(), notices(&outputs).len()), (1, 1));
}

#[test]
fn the_last_words_are_bounded_and_are_the_last() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    for number in 0..10_000 {
        rig.stderr(&format!("line é {number}\n"));
    }
    rig.stderr(&"é".repeat(100_000));
    rig.stderr("the end\n");
    assert!(rig.turns.tail.text().len() <= super::super::tail::MAX_TAIL);
    let why = failure(&rig.exit(1));
    assert!(why.len() < 4096 && why.contains("the end"));
}

#[test]
fn a_final_answer_is_bounded() {
    let mut rig = Rig::new("gemini");
    rig.start("one");
    let chunk = format!(
        r#"{{"type":"message","role":"assistant","content":"{}","delta":true}}"#,
        "é".repeat(300_001)
    );
    (0..3).for_each(|_| drop(rig.line(&chunk)));
    let outputs = rig.line(r#"{"type":"result","status":"success","stats":{}}"#);
    let text = end(&outputs).text.unwrap();
    assert_eq!(text.len(), 1024 * 1024);
}

#[test]
fn tools_that_never_finish_are_forgotten_in_the_end() {
    let mut rig = Rig::new("codex");
    rig.start("one");
    for id in 0..2_000 {
        let line = format!(
            r#"{{"type":"item.started","item":{{"id":"i{id}","type":"command_execution","command":"x"}}}}"#
        );
        assert_eq!(rig.line(&line).len(), 1);
    }
    let shown = format!("{:?}", rig.turns.dialect);
    assert!(shown.contains("\"i1999\"") && !shown.contains("\"i1\","));
}

#[test]
fn a_reason_for_a_refusal_is_bounded() {
    let mut rig = Rig::new("claude");
    rig.start("one");
    let request_id = asks(&rig.line(&ask(1, "ls")))[0].clone();
    let message = Some("é".repeat(10_000));
    let outputs = rig.handle(Input::Permission { request_id, allow: false, message }).unwrap();
    let Some(Output::Resolved { message: Some(message), .. }) = outputs.last() else {
        panic!("{outputs:?}")
    };
    assert_eq!(message.len(), 4096);
}
