//! Inputs in any order: each turn that starts ends once, prompts are worked on in order, there is never
//! a second process, and no line causes a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use protocol::workspace::AgentEvent;

use super::rig::{settings, somebody};
use crate::agent::{Config, Exit, Input, Output, Turns, open};

pub(super) const PROVIDERS: [&str; 7] =
    ["claude", "codex", "gemini", "opencode", "gemini-acp", "opencode-acp", "somebody"];

/// Lines that mean something to some dialect; the numbers and ids repeat.
const LINES: [&str; 34] = [
    r#"{"type":"system","subtype":"init","session_id":"id-1"}"#,
    r#"{"type":"system","subtype":"api_retry","attempt":1}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"id-1","total_cost_usd":0.1,"usage":{"input_tokens":1}}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"result":"By itself.","origin":{"kind":"task-notification"},"usage":{}}"#,
    r#"{"type":"user","isReplay":true,"uuid":"u","message":{"content":"x"}}"#,
    r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID"]}"#,
    r#"{"type":"result","status":"success","stats":{"input_tokens":1}}"#,
    r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"a":1}}}"#,
    r#"{"type":"control_request","request_id":"r2","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"a":1}}}"#,
    r#"{"type":"control_cancel_request","request_id":"r1"}"#,
    r#"{"type":"conversation_reset","new_conversation_id":"id-2"}"#,
    r#"{"type":"stream_event","event":{"delta":{"type":"text_delta","text":"x"}}}"#,
    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"n","input":{}}]}}"#,
    r#"{"type":"thread.started","thread_id":"id-1"}"#,
    r#"{"type":"item.started","item":{"id":"i","type":"command_execution","command":"ls"}}"#,
    r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"x"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":18446744073709551615,"output_tokens":2}}"#,
    r#"{"type":"turn.failed","error":{"message":"no"}}"#,
    r#"{"type":"error","message":"Session not found"}"#,
    r#"{"type":"message","role":"assistant","content":"x","delta":true}"#,
    r#"{"type":"text","sessionID":"id-1","part":{"text":"x"}}"#,
    r#"{"type":"step_finish","sessionID":"id-1","part":{"reason":"stop","tokens":{"input":1e300},"cost":1}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"id-1"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"log in"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"options":[]}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"fs/read_text_file","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"x"}}}}"#,
    "[1, 2",
    "null",
    "",
];

#[derive(Debug, Clone)]
pub(super) enum Step {
    Do(Input),
    /// Decides about the request that has waited longest.
    Decide(bool),
    Pass(u64),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let line = prop::sample::select(&LINES[..]).prop_map(|line| Input::Line(line.into()));
    let garbage = ".{0,200}".prop_map(|line| Input::Line(line.as_str().into()));
    let exits =
        prop::sample::select(&[Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::Lost][..]);
    prop_oneof![
        12 => line.prop_map(Step::Do),
        2 => garbage.prop_map(Step::Do),
        4 => Just(Step::Do(Input::Prompt { text: String::new() })),
        1 => Just(Step::Do(Input::Stderr("no rollout found for thread\n".into()))),
        3 => exits.prop_map(|exit| Step::Do(Input::Exited(exit))),
        1 => Just(Step::Do(Input::SpawnFailed("not found".into()))),
        2 => Just(Step::Do(Input::Interrupt)),
        1 => any::<bool>().prop_map(Step::Decide),
        3 => (0_u64..1_200).prop_map(Step::Pass),
    ]
}

/// A session, and a model of its surroundings that checks each output.
struct Watch {
    turns: Turns,
    now: Instant,
    /// The number of accepted prompts, and the number of turns begun.
    prompts: u64,
    begun: u64,
    running: bool,
    has_process: bool,
    /// Whether the process's input is still open.
    reads: bool,
    pending: Vec<String>,
    given: Vec<String>,
}

impl Watch {
    fn new(provider: &str, conversation: Option<String>) -> Self {
        let dialect = open(provider, &[somebody()], settings()).unwrap();
        Self {
            turns: Turns::new(Config::default(), dialect, conversation),
            now: Instant::now(),
            prompts: 0,
            begun: 0,
            running: false,
            has_process: false,
            reads: false,
            pending: Vec::new(),
            given: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Do(Input::Prompt { .. }) => {
                let text = format!("prompt {};", self.prompts + 1);
                if self.turns.handle(self.now, Input::Prompt { text }).is_ok() {
                    self.prompts += 1;
                }
            }
            Step::Do(Input::Exited(exit)) => self.exit(exit),
            Step::Do(Input::SpawnFailed(why)) => {
                self.has_process = false;
                self.turns.handle(self.now, Input::SpawnFailed(why)).unwrap();
            }
            Step::Do(input) => drop(self.turns.handle(self.now, input)),
            Step::Decide(allow) => {
                if let Some(request_id) = self.pending.first().cloned() {
                    let input = Input::Permission { request_id, allow, message: None };
                    self.turns.handle(self.now, input).unwrap();
                }
            }
            Step::Pass(seconds) => self.pass(Duration::from_secs(seconds)),
        }
        self.outputs();
    }

    /// Ends the process, which may happen at any time.
    fn exit(&mut self, exit: Exit) {
        self.has_process = false;
        self.turns.handle(self.now, Input::Exited(exit)).unwrap();
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.turns.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now);
            self.now = at;
            self.turns.handle_timeout(at);
            self.outputs();
            assert!(self.turns.poll_timeout().is_none_or(|next| next > at));
        }
        self.now = end;
    }

    fn outputs(&mut self) {
        let mut is_killed = false;
        while let Some(output) = self.turns.poll_output() {
            self.output(output, &mut is_killed);
        }
        assert_eq!(self.turns.running_turn().is_some(), self.running);
        assert_eq!(self.turns.pending().len(), self.pending.len());
        if is_killed {
            self.exit(Exit::Signal(9));
            self.outputs();
        }
    }

    fn output(&mut self, output: Output, is_killed: &mut bool) {
        match output {
            Output::Start(launch) => {
                assert!(!std::mem::replace(&mut self.has_process, true), "a second process");
                self.reads = launch.keep_stdin_open;
                self.given(&launch.stdin.unwrap_or_default());
            }
            Output::Write(bytes) => {
                assert!(self.has_process && self.reads, "nobody reads");
                self.given(&bytes);
            }
            Output::CloseStdin => {
                assert!(self.has_process && std::mem::replace(&mut self.reads, false));
            }
            Output::Signal(_) => assert!(self.has_process),
            Output::Kill => *is_killed = true,
            Output::Event(AgentEvent::TurnStarted { turn, .. }) => {
                assert!(!std::mem::replace(&mut self.running, true), "two turns at once");
                self.begun += 1;
                assert_eq!(turn, self.begun);
            }
            Output::TurnEnded(end) => {
                assert!(std::mem::replace(&mut self.running, false), "ended twice");
                assert_eq!(end.turn, self.begun);
                assert_eq!(
                    end.error.is_some(),
                    end.outcome == protocol::workspace::TurnOutcome::Failed
                );
            }
            Output::Ask { request_id, .. } => self.pending.push(request_id),
            Output::Resolved { request_id, .. } => {
                let at = self.pending.iter().position(|open| *open == request_id);
                self.pending.remove(at.expect("resolved what was asked"));
            }
            Output::Event(_) | Output::Conversation(_) | Output::Used(_) => {}
        }
    }

    /// Checks that a prompt that reached the process is that of the running turn.
    fn given(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let Some(at) = text.find("prompt ").filter(|at| text[at + 7..].contains(';')) else {
            return;
        };
        let number = text[at + 7..].split(';').next().unwrap().to_owned();
        assert_eq!(number, self.begun.to_string(), "not the running turn's prompt");
        self.given.push(number);
    }

    /// Ends the session. Each accepted prompt must have had its turn, and no end of a process may be
    /// waited for without a deadline.
    fn finish(&mut self) {
        for _ in 0..200 {
            if self.begun == self.prompts && !self.running {
                break;
            }
            self.pass(Duration::from_secs(3_600));
            if self.has_process {
                self.exit(Exit::Code(1));
                self.outputs();
            }
        }
        assert_eq!((self.begun, self.running), (self.prompts, false), "a prompt was lost");
        self.turns.handle(self.now, Input::Stop).unwrap();
        self.outputs();
        self.pass(Duration::from_secs(60));
        assert!(
            !self.turns.has_process() || !self.has_process || self.turns.poll_timeout().is_none()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_turn_ends_once_and_prompts_go_in_order(
        provider in prop::sample::select(&PROVIDERS[..]),
        resumes in any::<bool>(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut watch = Watch::new(provider, resumes.then(|| "id-0".to_owned()));
        for step in steps {
            watch.step(step);
        }
        watch.finish();
        let mut given = watch.given.clone();
        given.dedup();
        prop_assert!(given.is_sorted_by_key(|number| number.parse::<u64>().unwrap()));
    }

    #[test]
    fn no_json_makes_a_dialect_panic(
        provider in prop::sample::select(&PROVIDERS[..]),
        lines in prop::collection::vec(any_object(), 1..40),
    ) {
        let mut watch = Watch::new(provider, None);
        watch.step(Step::Do(Input::Prompt { text: String::new() }));
        for line in lines {
            watch.step(Step::Do(Input::Line(line.as_str().into())));
        }
        watch.finish();
    }
}

/// Objects with the names and values that dialects look for, in the wrong places.
fn any_object() -> impl Strategy<Value = String> {
    let names = "type|subtype|item|part|id|text|result|usage|event|delta|message|content|method|params|update|sessionUpdate|request|state|status|tokens|sessionID|request_id|jsonrpc|error|stopReason|sessionId|toolCall|options|input_tokens|cost";
    let name = prop::sample::select(names.split('|').map(str::to_owned).collect::<Vec<_>>());
    let values = "system|init|result|success|assistant|item.completed|agent_message|session/update|tool_call|text|tool_use|é|session/request_permission";
    let value = prop::sample::select(values.split('|').map(str::to_owned).collect::<Vec<_>>());
    let leaf = prop_oneof![
        value.prop_map(serde_json::Value::from),
        any::<u64>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    let tree = leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    tree.prop_map(|value| match value {
        object @ serde_json::Value::Object(_) => object.to_string(),
        other => serde_json::json!({ "type": other }).to_string(),
    })
}
