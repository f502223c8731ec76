//! Programs that speak the Agent Client Protocol, and the traps of the protocol.

use protocol::workspace::{AgentEvent, PermissionOutcome, TurnOutcome};
use serde_json::{Value, json};

use super::rig::{
    MINUTE, Rig, asks, completed, end, ends, events, failure, json_lines, notices, settings, text,
    tool_finished, tool_started, written,
};
use crate::agent::{McpServer, Output, PermissionMode, Settings, Signal, Usage};

const ID: &str = "ses_4d1bc9ff";

fn answer(id: u64, result: &Value) -> String {
    json!({"jsonrpc":"2.0","id":id,"result":result}).to_string()
}

fn error(id: u64, code: i64, message: &str) -> String {
    json!({"jsonrpc":"2.0","id":id,"error":{"code":code,"message":message}}).to_string()
}

fn hello(id: u64, load: bool) -> String {
    let capabilities = json!({"loadSession":load,"promptCapabilities":{"image":true}});
    answer(id, &json!({"protocolVersion":1,"agentCapabilities":capabilities,"authMethods":[]}))
}

fn update(update: &Value) -> String {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":ID,"update":update}})
        .to_string()
}

fn chunk(text: &str) -> String {
    update(&json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}}))
}

fn cost(amount: f64) -> String {
    let cost = json!({"amount":amount,"currency":"USD"});
    update(&json!({"sessionUpdate":"usage_update","used":10,"size":100,"cost":cost}))
}

fn permission(id: &Value, kind: &str) -> String {
    json!({"jsonrpc":"2.0","id":id,"method":"session/request_permission","params":{
        "sessionId":ID,
        "toolCall":{"toolCallId":"t1","title":"Run rm x","kind":kind,"rawInput":{"command":"rm x"}},
        "options":[
            {"optionId":"always","name":"Always","kind":"allow_always"},
            {"optionId":"once","name":"Once","kind":"allow_once"},
            {"optionId":"no","name":"No","kind":"reject_once"},
        ],
    }})
    .to_string()
}

/// A session that is open, in its first turn. The requests so far are 1, 2 and 3.
fn running(settings: Settings) -> Rig {
    let mut rig = Rig::with("somebody", settings, None);
    rig.start("hello");
    rig.line(&hello(1, true));
    rig.line(&answer(2, &json!({"sessionId":ID})));
    rig
}

#[test]
fn the_prompt_waits_until_the_session_is_open() {
    let mut rig = Rig::new("somebody");
    let launch = rig.start("hello");
    assert_eq!(
        (launch.program.as_str(), &launch.args[..]),
        ("/opt/somebody", &["serve".to_owned()][..])
    );
    let first = json_lines(&launch.stdin.unwrap());
    assert_eq!(first[0]["method"], "initialize");
    assert_eq!(first[0]["params"]["protocolVersion"], 1);
    let capabilities = &first[0]["params"]["clientCapabilities"];
    assert_eq!(
        *capabilities,
        json!({"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false})
    );
    let new = written(&rig.line(&hello(1, true)));
    assert_eq!(new[0]["method"], "session/new");
    assert_eq!(new[0]["params"], json!({"cwd":"/work","mcpServers":[]}));
    let outputs = rig.line(&answer(2, &json!({"sessionId":ID})));
    assert_eq!(outputs[0], Output::Conversation(ID.to_owned()));
    let prompt = written(&outputs);
    assert_eq!(prompt[0]["method"], "session/prompt");
    let blocks = json!([{"type":"text","text":"hello"}]);
    assert_eq!(prompt[0]["params"], json!({"sessionId":ID,"prompt":blocks}));
}

#[test]
fn a_whole_turn_with_a_tool_becomes_events_in_order() {
    let mut rig = running(settings());
    let lines = [
        update(&json!({"sessionUpdate":"available_commands_update","availableCommands":[]})),
        update(
            &json!({"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}),
        ),
        chunk("Let me see."),
        update(
            &json!({"sessionUpdate":"tool_call","toolCallId":"t1","title":"ls","kind":"execute","status":"pending","rawInput":{"command":"ls"}}),
        ),
        update(
            &json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}),
        ),
        update(
            &json!({"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a b"}}],"rawOutput":{"output":"a b"}}),
        ),
        chunk("Two "),
        chunk("files."),
        answer(3, &json!({"stopReason":"end_turn"})),
    ];
    let outputs = rig.lines(&lines.join("\n"));
    assert_eq!(
        events(&outputs),
        [
            AgentEvent::Thinking { text: "hm".into() },
            text("Let me see.", true),
            tool_started("t1", "ls", json!({"command":"ls"})),
            tool_finished("t1", true, "a b"),
            text("Two ", true),
            text("files.", true),
            completed("Two files."),
        ]
    );
    // The next prompt goes to the same session.
    assert_eq!(written(&rig.prompt("more"))[0]["params"]["sessionId"], ID);
}

/// As recorded of Gemini CLI 0.61: a tool that needed permission is reported only after its end, and the
/// usage of the turn has a form of its own.
#[test]
fn a_tool_that_is_told_of_when_it_is_done_has_begun_too() {
    let mut rig = running(settings());
    let lines = [
        chunk("Let me see."),
        update(
            &json!({"sessionUpdate":"tool_call_update","toolCallId":"run_1_0","status":"completed","title":"touch a","content":[],"locations":[],"kind":"execute"}),
        ),
        chunk("Done."),
        answer(
            3,
            &json!({"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":14,"output_tokens":8},"model_usage":[]}}}),
        ),
    ];
    let outputs = rig.lines(&lines.join("\n"));
    let id = || "run_1_0".to_owned();
    assert_eq!(
        events(&outputs)[1..3],
        [
            AgentEvent::ToolStarted { id: id(), name: "touch a".into(), input: Value::Null },
            AgentEvent::ToolFinished { id: id(), ok: true, output: String::new() },
        ]
    );
    let end = end(&outputs);
    assert_eq!(end.text.as_deref(), Some("Done."));
    assert_eq!((end.usage.input_tokens, end.usage.output_tokens), (14, 8));
}

#[test]
fn a_loaded_session_does_not_tell_its_history_again() {
    let mut rig = Rig::resuming("somebody", ID);
    rig.start("go on");
    let load = written(&rig.line(&hello(1, true)));
    assert_eq!(load[0]["method"], "session/load");
    assert_eq!(load[0]["params"]["sessionId"], ID);
    assert_eq!(rig.line(&chunk("what I said last week")), []);
    let outputs = rig.line(&answer(2, &Value::Null));
    assert_eq!(written(&outputs)[0]["method"], "session/prompt");
    assert_eq!(events(&rig.line(&chunk("now"))), [text("now", true)]);
    let outputs = rig.line(&answer(3, &json!({"stopReason":"end_turn"})));
    assert_eq!(end(&outputs).text.as_deref(), Some("now"));
}

#[test]
fn one_that_can_resume_is_not_made_to_load() {
    let mut rig = Rig::resuming("somebody", ID);
    rig.start("go on");
    let can = json!({"loadSession":true,"sessionCapabilities":{"resume":{}}});
    let outputs = rig.line(&answer(1, &json!({"protocolVersion":1,"agentCapabilities":can})));
    assert_eq!(written(&outputs)[0]["method"], "session/resume");
}

#[test]
fn a_session_that_cannot_be_loaded_begins_anew_with_a_notice() {
    let mut rig = Rig::resuming("somebody", ID);
    rig.start("go on");
    rig.line(&hello(1, true));
    let outputs = rig.line(&error(2, -32002, "Resource not found"));
    assert!(notices(&outputs)[0].contains("Resource not found"));
    assert_eq!(written(&outputs)[0]["method"], "session/new");
    let outputs = rig.line(&answer(3, &json!({"sessionId":"ses_other"})));
    assert_eq!(outputs[0], Output::Conversation("ses_other".to_owned()));
    assert_eq!(written(&outputs)[0]["params"]["prompt"][0]["text"], "go on");
}

#[test]
fn one_that_can_go_back_is_stopped_when_idle_and_one_that_cannot_is_not() {
    for load in [true, false] {
        let mut rig = Rig::new("somebody");
        rig.start("hello");
        rig.line(&hello(1, load));
        rig.line(&answer(2, &json!({"sessionId":ID})));
        rig.line(&answer(3, &json!({"stopReason":"end_turn"})));
        let stopped = rig.pass(60 * MINUTE).contains(&Output::CloseStdin);
        assert_eq!(stopped, load);
    }
}

#[test]
fn files_and_terminals_are_refused_as_unknown_methods() {
    let mut rig = running(settings());
    for method in
        ["fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create"]
    {
        let line = json!({"jsonrpc":"2.0","id":"x7","method":method,"params":{}}).to_string();
        let refused = written(&rig.line(&line));
        assert_eq!(refused[0]["error"]["code"], -32601);
        assert_eq!(refused[0]["id"], "x7");
    }
}

#[test]
fn a_permission_is_answered_with_an_option_that_holds_once() {
    let mut rig = running(settings());
    for (allow, option) in [(true, "once"), (false, "no")] {
        let outputs = rig.line(&permission(&json!(0), "execute"));
        let Output::Ask { request_id, tool, input } = &outputs[0] else { panic!("{outputs:?}") };
        assert_eq!((tool.as_str(), input), ("Run rm x", &json!({"command":"rm x"})));
        let reply = written(&rig.decide(&request_id.clone(), allow));
        let outcome = json!({"outcome":"selected","optionId":option});
        assert_eq!(reply, [json!({"jsonrpc":"2.0","id":0,"result":{"outcome":outcome}})]);
    }
}

#[test]
fn granted_permissions_decide_without_asking() {
    let decided = [
        (PermissionMode::Bypass, "execute", Some("once")),
        (PermissionMode::AcceptEdits, "edit", Some("once")),
        (PermissionMode::AcceptEdits, "execute", None),
        (PermissionMode::Plan, "edit", Some("no")),
        (PermissionMode::Plan, "read", None),
    ];
    for (permissions, kind, option) in decided {
        let mut rig = running(Settings { permissions, ..settings() });
        let outputs = rig.line(&permission(&json!("p"), kind));
        let chosen = written(&outputs);
        let chosen = chosen.first().map(|reply| reply["result"]["outcome"]["optionId"].clone());
        assert_eq!(chosen, option.map(Value::from), "{permissions:?} {kind}");
        assert_eq!(asks(&outputs).len(), usize::from(option.is_none()));
    }
}

#[test]
fn an_interrupt_cancels_the_turn_and_answers_every_open_permission() {
    let mut rig = running(settings());
    rig.line(&permission(&json!(5), "execute"));
    let outputs = rig.interrupt();
    let messages = written(&outputs);
    assert_eq!(
        messages[0],
        json!({"jsonrpc":"2.0","id":5,"result":{"outcome":{"outcome":"cancelled"}}})
    );
    assert_eq!(messages[1]["method"], "session/cancel");
    assert_eq!(messages[1].get("id"), None);
    assert!(matches!(outputs[1], Output::Resolved { outcome: PermissionOutcome::Expired, .. }));
    let outputs = rig.line(&answer(3, &json!({"stopReason":"cancelled"})));
    assert_eq!(end(&outputs).outcome, TurnOutcome::Interrupted);
}

#[test]
fn one_that_is_still_opening_is_ended_by_a_signal() {
    let mut rig = Rig::new("somebody");
    rig.start("hello");
    assert_eq!(rig.interrupt(), [Output::Signal(Signal::Term)]);
    assert_eq!(end(&rig.exit(143)).outcome, TurnOutcome::Interrupted);
}

#[test]
fn one_that_wants_a_login_says_so_and_is_asked_again_by_the_next_prompt() {
    let mut rig = Rig::new("somebody");
    rig.start("hello");
    rig.line(&hello(1, true));
    let why = failure(&rig.line(&error(2, -32000, "Authentication required")));
    assert!(why.contains("log in"), "{why}");
    assert_eq!(written(&rig.prompt("again"))[0]["method"], "session/new");
    let outputs = rig.line(&answer(3, &json!({"sessionId":ID})));
    assert_eq!(written(&outputs)[0]["params"]["prompt"][0]["text"], "again");
}

#[test]
fn another_version_of_the_protocol_fails_the_turn() {
    let mut rig = Rig::new("somebody");
    rig.start("hello");
    let outputs = rig.line(&answer(1, &json!({"protocolVersion":2,"agentCapabilities":{}})));
    assert!(failure(&outputs).contains("version 2"));
}

#[test]
fn reasons_to_stop_that_are_no_end_are_failures() {
    for reason in ["max_tokens", "max_turn_requests", "refusal", "something_new"] {
        let mut rig = running(settings());
        rig.line(&chunk("so far"));
        let outputs = rig.line(&answer(3, &json!({"stopReason":reason})));
        assert_eq!(end(&outputs).text.as_deref(), Some("so far"));
        failure(&outputs);
    }
}

#[test]
fn a_model_is_chosen_among_those_that_the_session_offers() {
    let wanted = || Settings { model: Some("m2".to_owned()), ..settings() };
    let offers = [
        (
            json!({"models":{"availableModels":[{"modelId":"m1"},{"modelId":"m2"}]}}),
            Some("session/set_model"),
        ),
        (
            json!({"configOptions":[{"id":"model","category":"model","options":[{"value":"m2","name":"M"}]}]}),
            Some("session/set_config_option"),
        ),
        (json!({}), None),
    ];
    for (offer, method) in offers {
        let mut rig = Rig::with("somebody", wanted(), None);
        rig.start("hello");
        rig.line(&hello(1, true));
        let mut opened = offer;
        opened["sessionId"] = json!(ID);
        let outputs = rig.line(&answer(2, &opened));
        let methods: Vec<Value> = written(&outputs).iter().map(|w| w["method"].clone()).collect();
        let expected: Vec<&str> = method.into_iter().chain(["session/prompt"]).collect();
        assert_eq!(methods, expected);
        assert_eq!(notices(&outputs).len(), usize::from(method.is_none()));
    }
}

#[test]
fn cost_is_that_of_the_turn_though_it_is_told_of_the_session() {
    let mut rig = running(settings());
    rig.line(&cost(0.5));
    let usage = json!({"totalTokens":12,"inputTokens":10,"outputTokens":2});
    let outputs = rig.line(&answer(3, &json!({"stopReason":"end_turn","usage":usage})));
    assert_eq!((end(&outputs).usage.cost_usd, end(&outputs).usage.input_tokens), (Some(0.5), 10));
    rig.prompt("more");
    rig.line(&cost(0.75));
    let outputs = rig.line(&answer(4, &json!({"stopReason":"end_turn"})));
    assert_eq!(end(&outputs).usage.cost_usd, Some(0.25));
    let used = Usage { cost_usd: Some(0.75), ..Usage::default() };
    assert!(outputs.contains(&Output::Used(used)));
}

#[test]
fn cost_goes_on_from_what_was_kept_though_a_loaded_session_does_not_say_it_again() {
    let used = Usage { cost_usd: Some(0.75), ..Usage::default() };
    for (total, of_the_turn) in [(1.0, 0.25), (0.5, 0.5)] {
        let mut rig = Rig::with("somebody", Settings { used, ..settings() }, Some(ID));
        rig.start("go on");
        rig.line(&hello(1, true));
        rig.line(&answer(2, &Value::Null));
        rig.line(&cost(total));
        let outputs = rig.line(&answer(3, &json!({"stopReason":"end_turn"})));
        assert_eq!(end(&outputs).usage.cost_usd, Some(of_the_turn), "total {total}");
    }
}

#[test]
fn mcp_servers_are_told_when_the_session_is_opened() {
    let server = McpServer {
        name: "team".to_owned(),
        command: "/bin/warren".to_owned(),
        args: vec!["team".to_owned(), "mcp".to_owned()],
        env: vec![("TOKEN".to_owned(), "secret".into())],
    };
    let mut rig = Rig::with("somebody", Settings { mcp_servers: vec![server], ..settings() }, None);
    let launch = rig.start("hello");
    assert!(!format!("{:?}", launch.args).contains("secret"));
    let new = written(&rig.line(&hello(1, true)));
    assert_eq!(
        new[0]["params"]["mcpServers"],
        json!([{"name":"team","command":"/bin/warren","args":["team","mcp"],
                "env":[{"name":"TOKEN","value":"secret"}]}])
    );
    assert_eq!(ends(&rig.outputs()), []);
}
