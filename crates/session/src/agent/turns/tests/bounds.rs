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

/// The lines that end a turn of each program, with a long text.
fn ends_with(provider: &str, text: &str) -> Vec<String> {
    match provider {
        "claude" => vec![format!(
            r#"{{"type":"result","result":"{text}","subtype":"success","is_error":false,"session_id":"{ID}"}}"#
        )],
        "codex" => vec![
            format!(
                r#"{{"type":"item.completed","item":{{"type":"agent_message","id":"i","text":"{text}"}}}}"#
            ),
            r#"{"type":"turn.completed","usage":{}}"#.to_owned(),
        ],
        "gemini" => vec![
            format!(r#"{{"type":"message","role":"assistant","content":"{text}"}}"#),
            r#"{"type":"result","status":"success","stats":{}}"#.to_owned(),
        ],
        _ => vec![
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"content":{{"type":"text","text":"{text}"}},"sessionUpdate":"agent_message_chunk"}}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#.to_owned(),
        ],
    }
}

const ID: &str = "4f1c0a52-9d3e-4a6b-8c1d-2e7f90b1a3c4";

/// The answer of a turn whose program writes this.
fn answer(provider: &str, text: &str) -> String {
    let mut rig = Rig::new(provider);
    rig.start("one");
    let outputs: Vec<Output> =
        ends_with(provider, text).iter().flat_map(|line| rig.line(line)).collect();
    assert!(notices(&outputs).len() <= 1, "{provider}: {outputs:?}");
    end(&outputs).text.unwrap_or_else(|| panic!("{provider}: no answer"))
}

#[test]
fn an_answer_of_any_length_ends_its_turn_with_its_beginning() {
    for provider in ["claude", "codex", "gemini", "gemini-acp"] {
        for bytes in [MAX_LINE, 9 * MAX_LINE] {
            let text = answer(provider, &format!("so it begins {}", "x".repeat(bytes)));
            assert!(text.starts_with("so it begins xxx"), "{provider}");
            assert!((400_000..MAX_LINE).contains(&text.len()), "{provider}: {}", text.len());
        }
    }
}

#[test]
fn an_answer_that_strict_readers_refuse_is_shown_and_ends_its_turn() {
    let deep = format!(r#"it","x":{}1{},"y":"-"#, "[".repeat(200), "]".repeat(200));
    for provider in ["claude", "codex", "gemini", "gemini-acp"] {
        assert_eq!(answer(provider, r"cut \ud83d…"), "cut \u{fffd}…", "{provider}");
        assert_eq!(answer(provider, "a\tb\u{1b}[0m"), "a\tb\u{1b}[0m", "{provider}");
        assert_eq!(answer(provider, &deep), "it", "{provider}");
        assert_eq!(answer(provider, r#"it","x":NaN,"y":"-"#), "it", "{provider}");
    }
}

#[test]
fn a_question_of_any_length_is_asked_and_answered() {
    let mut rig = Rig::new("claude");
    rig.start("one");
    let long = "x".repeat(2 * MAX_LINE);
    let outputs = rig.line(&ask(1, &long));
    let [request_id] = &asks(&outputs)[..] else { panic!("it is not asked") };
    let shown = outputs.iter().find_map(|output| match output {
        Output::Ask { input, .. } => input["command"].as_str(),
        _ => None,
    });
    assert!(shown.is_some_and(|shown| shown.len() < MAX_LINE && shown.ends_with("x…")));
    let answer = &written(&rig.decide(request_id, true))[0]["response"]["response"];
    assert!(answer["updatedInput"]["command"] == long, "the tool gets what it asked for");
}

#[test]
fn a_question_that_is_too_long_to_be_kept_is_refused_and_the_turn_goes_on() {
    let mut rig = Rig::new("claude");
    rig.start("one");
    let outputs = rig.line(&ask(1, &"x".repeat(9 * MAX_LINE)));
    assert_eq!(asks(&outputs), Vec::<String>::new());
    let answer = &written(&outputs)[0]["response"];
    assert_eq!(
        (&answer["request_id"], &answer["response"]["behavior"]),
        (&"r1".into(), &"deny".into())
    );
    // Inputs that are too long together are refused, too.
    let many = "x".repeat(7 * MAX_LINE);
    let open = (2..6).filter(|id| !asks(&rig.line(&ask(*id, &many))).is_empty()).count();
    assert_eq!(open, 2);
    let numbers = format!(
        r#"{{"type":"control_request","request_id":"n","request":{{"subtype":"can_use_tool","tool_name":"T","input":{{"list":[{}0]}}}}}}"#,
        "0,".repeat(MAX_LINE)
    );
    assert_eq!(asks(&rig.line(&numbers)), Vec::<String>::new(), "it would take 32 MiB");
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
