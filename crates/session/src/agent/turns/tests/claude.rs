//! Claude Code, as recorded of 2.1.197, and its traps.

use protocol::workspace::{AgentEvent, PermissionOutcome, TurnOutcome};
use serde_json::json;

use super::rig::{
    MINUTE, Rig, SECOND, asks, begun, completed, end, ends, events, failure, has_expired,
    json_lines, notices, text, tool_finished, tool_started, written,
};
use crate::agent::{Input, Output, Signal, Usage};

const ID: &str = "4f1c0a52-9d3e-4a6b-8c1d-2e7f90b1a3c4";
const OTHER: &str = "99999999-9d3e-4a6b-8c1d-2e7f90b1a3c4";

fn init(id: &str) -> String {
    format!(
        r#"{{"type":"system","subtype":"init","cwd":"/work","session_id":"{id}","tools":["Bash","Read"],"mcp_servers":[],"model":"opus","permissionMode":"default","slash_commands":[],"apiKeySource":"none","claude_code_version":"2.1.197","agents":[],"skills":[],"uuid":"u1"}}"#
    )
}

fn result(text: &str, cost: f64) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":1200,"duration_api_ms":900,"num_turns":1,"result":"{text}","stop_reason":"end_turn","session_id":"{ID}","total_cost_usd":{cost},"usage":{{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":7}},"modelUsage":{{}},"permission_denials":[],"terminal_reason":"completed","uuid":"u9"}}"#
    )
}

fn piece(text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"session_id":"{ID}","parent_tool_use_id":null,"uuid":"u2"}}"#
    )
}

fn assistant(block: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"msg_1","type":"message","role":"assistant","model":"opus","content":[{block}],"usage":{{"input_tokens":10,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"{ID}","uuid":"u3"}}"#
    )
}

fn permission(id: &str) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"rm x"}},"tool_use_id":"toolu_1"}}}}"#
    )
}

const ABORTED: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"duration_ms":5,"num_turns":1,"terminal_reason":"aborted_tools","errors":["interrupted"],"session_id":"4f1c0a52-9d3e-4a6b-8c1d-2e7f90b1a3c4","total_cost_usd":0.5,"usage":{"input_tokens":0,"output_tokens":0},"permission_denials":[]}"#;

/// A result whose turn was interrupted in the middle of an answer: only the last field shows that.
const CUT_OFF: &str = r#"{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"duration_ms":770,"num_turns":2,"result":"","stop_reason":"end_turn","session_id":"4f1c0a52-9d3e-4a6b-8c1d-2e7f90b1a3c4","total_cost_usd":0.5,"usage":{"input_tokens":18,"output_tokens":9},"permission_denials":[],"terminal_reason":"aborted_streaming"}"#;

/// A session after its first turn, with a warm process.
fn warm() -> Rig {
    let mut rig = Rig::new("claude");
    rig.start("hello");
    rig.lines(&[init(ID), result("Hi.", 0.5)].join("\n"));
    rig
}

#[test]
fn a_whole_turn_with_a_tool_becomes_events_in_order() {
    let mut rig = Rig::new("claude");
    let launch = rig.start("count the files");
    assert!(launch.keep_stdin_open);
    let stdin = json_lines(&launch.stdin.unwrap());
    assert_eq!(
        stdin,
        [
            json!({"type":"user","uuid":stdin[0]["uuid"],"message":{"role":"user","content":"count the files"},
                "parent_tool_use_id":null,"session_id":""})
        ]
    );
    let lines = [
        init(ID),
        assistant(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#),
        assistant(r#"{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls | wc -l"}}"#),
        r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"3","is_error":false}]},"parent_tool_use_id":null,"session_id":"x","uuid":"u4","timestamp":"2026-01-01T00:00:00Z","tool_use_result":{"stdout":"3"}}"#.to_owned(),
        assistant(r#"{"type":"text","text":"Three."}"#),
        result("Three.", 0.5),
    ];
    let outputs = rig.lines(&lines.join("\n"));
    assert_eq!(outputs[0], Output::Conversation(ID.to_owned()));
    assert_eq!(
        events(&outputs),
        [
            AgentEvent::Thinking { text: "hm".into() },
            tool_started("toolu_1", "Bash", json!({"command":"ls | wc -l"})),
            tool_finished("toolu_1", true, "3"),
            text("Three.", false),
            completed("Three."),
        ]
    );
    let usage = Usage { input_tokens: 1110, output_tokens: 7, cost_usd: Some(0.5) };
    assert_eq!(end(&outputs).usage, usage);
}

#[test]
fn the_second_turn_goes_to_the_same_process_and_costs_only_its_own() {
    let mut rig = warm();
    let outputs = rig.prompt("more");
    assert_eq!(written(&outputs)[0]["message"]["content"], "more");
    assert!(!outputs.iter().any(|output| matches!(output, Output::Start(_))));
    let outputs = rig.lines(&[init(ID), result("Yes.", 0.75)].join("\n"));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Conversation(_))));
    assert_eq!(end(&outputs).usage.cost_usd, Some(0.25));
    assert_eq!(end(&outputs).turn, 2);
}

/// Messages with all lines that the program prints of them.
#[test]
fn each_message_that_comes_in_pieces_begins_a_new_text() {
    let mut rig = Rig::new("claude");
    rig.start("look");
    let event = |event: &str| {
        format!(
            r#"{{"type":"stream_event","event":{event},"session_id":"{ID}","parent_tool_use_id":null,"uuid":"u2"}}"#
        )
    };
    let begins = |block: &str| {
        let message = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"opus","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}"#;
        let start =
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
        [event(message), event(&start)].join("\n")
    };
    let ends = [
        event(r#"{"type":"content_block_stop","index":0}"#),
        event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#),
        event(r#"{"type":"message_stop"}"#),
    ]
    .join("\n");
    let said = |text: &str| assistant(&format!(r#"{{"type":"text","text":"{text}"}}"#));
    let empty = begins(r#"{"type":"text","text":""}"#);
    let lines = [
        &init(ID),
        &empty,
        &piece("I "),
        &piece("look."),
        &said("I look."),
        &ends,
        &empty,
        &piece("Two "),
        &piece("files."),
        &said("Two files."),
        &ends,
        // This one is broken off and asked for again.
        &empty,
        &piece("The"),
        &empty,
        &piece("That "),
        &piece("is all."),
        &said("That is all."),
        // A whole text without pieces before it.
        &said("Really."),
        &ends,
    ];
    let lines = lines.map(String::as_str).join("\n");
    let texts = events(&rig.lines(&lines)).into_iter().map(|event| match event {
        AgentEvent::Text { text, delta, .. } => (text, delta),
        other => panic!("{other:?}"),
    });
    let expected = [
        ("I ", false),
        ("look.", true),
        ("Two ", false),
        ("files.", true),
        ("The", false),
        ("That ", false),
        ("is all.", true),
        ("Really.", false),
    ];
    assert!(texts.eq(expected.map(|(text, delta)| (text.to_owned(), delta))));
}

#[test]
fn a_helpers_text_is_not_the_sessions() {
    let mut rig = Rig::new("claude");
    rig.start("hello");
    let of_agent = assistant(r#"{"type":"text","text":"inner"}"#);
    let of_helper =
        of_agent.replace(r#""parent_tool_use_id":null"#, r#""parent_tool_use_id":"toolu_7""#);
    assert_eq!(rig.line(&of_helper), []);
}

#[test]
fn a_permission_is_asked_and_its_answer_written() {
    let mut rig = Rig::new("claude");
    rig.start("delete x");
    let outputs = rig.line(&permission("r1"));
    let input = json!({"command":"rm x"});
    let ask = Output::Ask { request_id: "s.1.1".into(), tool: "Bash".into(), input: input.clone() };
    assert_eq!(outputs, [ask]);
    assert_eq!(rig.turns.pending()[0].request_id, "s.1.1");
    let outputs = rig.decide("s.1.1", true);
    assert_eq!(
        written(&outputs),
        [json!({"type":"control_response","response":{"subtype":"success","request_id":"r1",
                "response":{"behavior":"allow","updatedInput":input}}})]
    );
    assert!(matches!(&outputs[1], Output::Resolved { outcome: PermissionOutcome::Allow, .. }));

    let outputs = rig.line(&permission("r2"));
    let request_id = asks(&outputs)[0].clone();
    let message = Some("not today".to_owned());
    let outputs = rig.handle(Input::Permission { request_id, allow: false, message }).unwrap();
    let response = &written(&outputs)[0]["response"]["response"];
    assert_eq!(*response, json!({"behavior":"deny","message":"not today"}));
}

#[test]
fn a_permission_that_the_program_takes_back_is_gone() {
    let mut rig = Rig::new("claude");
    rig.start("delete x");
    rig.line(&permission("r1"));
    let outputs = rig.line(r#"{"type":"control_cancel_request","request_id":"r1"}"#);
    let [Output::Resolved { outcome: PermissionOutcome::Expired, .. }] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(rig.turns.pending(), []);
}

#[test]
fn a_control_request_that_nobody_knows_is_answered_so_that_it_does_not_hang() {
    let mut rig = Rig::new("claude");
    rig.start("hello");
    let line = r#"{"type":"control_request","request_id":"h1","request":{"subtype":"hook_callback","callback_id":"c"}}"#;
    let written = written(&rig.line(line));
    assert_eq!(written[0]["response"]["subtype"], "error");
    assert_eq!(written[0]["response"]["request_id"], "h1");
}

#[test]
fn an_interrupt_is_asked_for_and_cancels_what_is_open() {
    let mut rig = Rig::new("claude");
    rig.start("delete x");
    rig.lines(&[init(ID), permission("r1")].join("\n"));
    let outputs = rig.interrupt();
    assert_eq!(written(&outputs)[0]["request"], json!({"subtype":"interrupt"}));
    assert!(has_expired(&outputs));
    let outputs = rig.lines(&format!(
        "{}\n{ABORTED}",
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"interrupt-1"}}"#
    ));
    assert_eq!((end(&outputs).outcome, end(&outputs).error), (TurnOutcome::Interrupted, None));
    // The process lives on, and takes the next prompt.
    assert_eq!(written(&rig.prompt("go on")).len(), 1);
}

#[test]
fn an_answer_that_is_cut_off_is_no_completed_turn_though_it_is_called_a_success() {
    let mut rig = Rig::new("claude");
    rig.start("tell me everything");
    rig.lines(&[init(ID), assistant(r#"{"type":"text","text":"In the beg"}"#)].join("\n"));
    rig.interrupt();
    let end = end(&rig.lines(CUT_OFF));
    assert_eq!((end.outcome, end.error), (TurnOutcome::Interrupted, None));
    assert_eq!((end.text.as_deref(), end.usage.output_tokens), (Some("In the beg"), 9));
}

#[test]
fn a_resumed_one_is_given_its_conversation_and_keeps_it_though_another_is_named() {
    let mut rig = Rig::resuming("claude", ID);
    let launch = rig.start("go on");
    assert!(launch.args.contains(&format!("--resume={ID}")));
    let outputs = rig.lines(&[init(OTHER), result("Yes.", 0.1)].join("\n"));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Conversation(_))));
    assert_eq!(rig.turns.conversation(), Some(ID));
}

#[test]
fn a_conversation_that_is_reset_goes_on_under_its_new_id() {
    let mut rig = warm();
    let line = format!(r#"{{"type":"conversation_reset","new_conversation_id":"{OTHER}"}}"#);
    assert_eq!(rig.line(&line), [Output::Conversation(OTHER.to_owned())]);
    rig.exit(0);
    assert!(rig.start("go on").args.contains(&format!("--resume={OTHER}")));
}

const NOT_FOUND: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: 4f1c0a52"],"session_id":"00000000-0000-4000-8000-000000000000","usage":{"input_tokens":0,"output_tokens":0}}"#;

#[test]
fn a_refused_resume_begins_anew_once_with_the_same_prompt() {
    let mut rig = Rig::resuming("claude", ID);
    rig.start("go on");
    rig.stderr("No conversation found with session ID: 4f1c0a52\n");
    let outputs = rig.line(NOT_FOUND);
    assert_eq!(ends(&outputs), []);
    assert_eq!(notices(&outputs).len(), 1);
    assert!(outputs.contains(&Output::CloseStdin));
    let outputs = rig.exit(1);
    let launch = super::rig::launch_in(&outputs);
    assert!(!launch.args.iter().any(|arg| arg.starts_with("--resume")));
    assert_eq!(json_lines(&launch.stdin.unwrap())[0]["message"]["content"], "go on");
    let outputs = rig.lines(&[init(OTHER), result("Fresh.", 0.1)].join("\n"));
    assert_eq!(outputs[0], Output::Conversation(OTHER.to_owned()));
    assert_eq!(end(&outputs).text.as_deref(), Some("Fresh."));
}

#[test]
fn an_error_of_the_models_server_fails_the_turn_with_its_words() {
    let mut rig = Rig::new("claude");
    rig.start("hello");
    let line = r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401 invalid key","session_id":"x","usage":{}}"#;
    assert_eq!(failure(&rig.line(line)), "API Error: 401 invalid key");
    let mut rig = Rig::new("claude");
    rig.start("hello");
    let line = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"usage":{}}"#;
    assert_eq!(failure(&rig.line(line)), "The turn ended with error_max_turns.");
}

#[test]
fn retries_are_told_but_are_no_progress() {
    let mut rig = Rig::new("claude");
    rig.start("hello");
    for attempt in 1..=9 {
        rig.pass(MINUTE);
        let line = format!(
            r#"{{"type":"system","subtype":"api_retry","attempt":{attempt},"max_retries":10,"retry_delay_ms":60000,"error_status":529}}"#
        );
        let notice = &notices(&rig.line(&line))[0];
        assert!(notice.contains(&format!("attempt {attempt} of 10")), "{notice}");
    }
    failure(&rig.pass(MINUTE));
}

#[test]
fn an_idle_process_is_stopped_gently_and_the_next_prompt_resumes() {
    let mut rig = warm();
    assert_eq!(rig.pass(15 * MINUTE - SECOND), []);
    assert_eq!(rig.pass(SECOND), [Output::CloseStdin]);
    assert_eq!(rig.pass(5 * SECOND), [Output::Signal(Signal::Term)]);
    assert_eq!(rig.pass(5 * SECOND), [Output::Kill]);
    // A prompt that comes meanwhile waits for the end of the old process.
    let outputs = rig.prompt("are you there?");
    assert_eq!(events(&outputs), [begun(2, "are you there?")]);
    assert_eq!(outputs.len(), 1);
    let launch =
        super::rig::launch_in(&rig.handle(Input::Exited(crate::agent::Exit::Signal(9))).unwrap());
    assert!(launch.args.contains(&format!("--resume={ID}")));
}

#[test]
fn a_crash_fails_the_turn_with_the_last_words_and_the_next_prompt_resumes() {
    let mut rig = warm();
    rig.prompt("more");
    rig.stderr("TypeError: x is undefined\n");
    let why = failure(&rig.exit(1));
    assert!(why.contains("code 1") && why.contains("TypeError: x is undefined"), "{why}");
    assert!(rig.start("again").args.contains(&format!("--resume={ID}")));
}
