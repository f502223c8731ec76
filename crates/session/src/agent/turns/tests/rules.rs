//! The rules that hold for every kind of agent.

use std::time::Duration;

use protocol::workspace::{PermissionOutcome, TurnOutcome};

use super::rig::{
    MINUTE, Rig, SECOND, asks, begun, end, ends, events, failure, has_expired, launch_in, notices,
    settings, written,
};
use crate::agent::{
    AgentOutput, Config, Dialect, Exit, Halt, Input, Launch, MAX_QUEUED, Output, ParsedLine,
    Signal, Start, TurnsError, open,
};

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"id-1","usage":{}}"#;
const ASK: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#;

fn configured(config: &Config) -> Rig {
    Rig::of(open("claude", &[], settings()).unwrap(), config, None)
}

fn waiting(rig: &Rig) -> Vec<String> {
    rig.turns.waiting().map(str::to_owned).collect()
}

fn claude() -> Rig {
    let mut rig = Rig::new("claude");
    rig.start("one");
    rig
}

#[test]
fn no_process_starts_before_the_first_prompt() {
    let mut rig = Rig::new("claude");
    assert!(!rig.turns.has_process());
    assert_eq!(rig.pass(60 * MINUTE), []);
}

#[test]
fn turns_are_counted_from_where_they_were() {
    let mut rig = configured(&Config { turn: 41, ..Config::default() });
    assert_eq!(events(&rig.prompt("x")), [begun(42, "x")]);
}

#[test]
fn prompts_within_a_turn_are_worked_on_in_order() {
    let mut rig = claude();
    assert_eq!(rig.prompt("two"), []);
    assert_eq!(rig.prompt("three"), []);
    for (turn, text) in [(2, "two"), (3, "three")] {
        let outputs = rig.line(DONE);
        assert_eq!(end(&outputs).turn, turn - 1);
        assert_eq!(events(&outputs).last(), Some(&begun(turn, text)));
        assert_eq!(written(&outputs)[0]["message"]["content"], text);
    }
    rig.line(DONE);
    assert_eq!((rig.turns.running_turn(), rig.turns.queued()), (None, 0));
}

#[test]
fn a_silent_turn_fails_and_its_process_is_stopped() {
    let mut rig = claude();
    assert_eq!(rig.pass(10 * MINUTE - SECOND), []);
    let outputs = rig.pass(SECOND);
    assert!(failure(&outputs).contains("said nothing for 600 s"));
    assert_eq!(outputs[0], Output::CloseStdin);
    assert_eq!(rig.pass(10 * SECOND), [Output::Signal(Signal::Term), Output::Kill]);
}

#[test]
fn a_turns_time_begins_when_the_process_of_before_is_gone() {
    let mut rig = configured(&Config { silence_timeout: 3 * SECOND, ..Config::default() });
    rig.start("one");
    failure(&rig.pass(3 * SECOND));
    assert_eq!(events(&rig.prompt("two")), [begun(2, "two")]);
    // The old process takes its time to end. The turn that waits for this end does not fail meanwhile.
    assert_eq!(rig.pass(30 * SECOND), [Output::Signal(Signal::Term), Output::Kill]);
    launch_in(&rig.exit(137));
    assert_eq!(rig.pass(2 * SECOND), []);
    failure(&rig.pass(SECOND));
}

#[test]
fn garbage_is_no_sign_of_life() {
    let mut rig = claude();
    let mut outputs = Vec::new();
    for _ in 0..70 {
        outputs.extend(rig.line("%$!@ garbage"));
        outputs.extend(rig.line(r#"{"type":"heartbeat_of_the_future"}"#));
        outputs.extend(rig.pass(10 * SECOND));
    }
    assert!(failure(&outputs).contains("%$!@ garbage"));
    assert_eq!(notices(&outputs).len(), 1, "one line is shown, not seventy");
}

#[test]
fn a_turn_may_wait_for_a_person_longer_than_it_may_be_silent() {
    let mut rig = configured(&Config { permission_timeout: 60 * MINUTE, ..Config::default() });
    rig.start("one");
    let request = asks(&rig.line(ASK))[0].clone();
    assert_eq!(rig.pass(59 * MINUTE), []);
    rig.decide(&request, true);
    assert_eq!(rig.pass(9 * MINUTE), [], "the wait was no silence");
    failure(&rig.pass(MINUTE));
}

#[test]
fn a_permission_that_nobody_answers_is_refused_in_the_end() {
    let mut rig = claude();
    rig.line(ASK);
    let outputs = rig.pass(10 * MINUTE);
    assert_eq!(written(&outputs)[0]["response"]["response"]["behavior"], "deny");
    let expired = Output::Resolved {
        request_id: "s.1.1".into(),
        outcome: PermissionOutcome::Expired,
        message: None,
    };
    assert!(outputs.contains(&expired));
    assert!(rig.turns.running_turn().is_some());
}

#[test]
fn permissions_end_with_their_turn_and_their_names_are_never_used_again() {
    let mut rig = claude();
    rig.line(ASK);
    let outputs = rig.line(DONE);
    assert!(has_expired(&outputs));
    let late = Input::Permission { request_id: "s.1.1".into(), allow: true, message: None };
    let unknown = TurnsError::UnknownRequest { request_id: "s.1.1".into() };
    assert_eq!(rig.handle(late), Err(unknown));
    rig.prompt("two");
    assert_eq!(asks(&rig.line(ASK)), ["s.2.1"]);
}

#[test]
fn permissions_end_with_their_process() {
    let mut rig = claude();
    rig.line(ASK);
    let outputs = rig.exit(1);
    assert_eq!(written(&outputs), Vec::<serde_json::Value>::new(), "nobody reads any more");
    assert!(outputs.iter().any(|o| matches!(o, Output::Resolved { .. })));
    assert_eq!(rig.turns.pending(), []);
}

#[test]
fn permissions_asked_between_turns_end_with_their_process_too() {
    let mut rig = claude();
    rig.line(DONE);
    assert_eq!(asks(&rig.line(ASK)), ["s.1.1"]);
    assert_eq!(rig.exit(0).len(), 1);
    assert_eq!(rig.turns.pending(), []);
}

#[test]
fn late_output_of_an_old_process_is_not_the_next_turns() {
    let mut rig = claude();
    rig.interrupt();
    rig.interrupt();
    rig.prompt("two");
    assert_eq!(rig.line(DONE), []);
    launch_in(&rig.exit(137));
    assert_eq!(end(&rig.line(DONE)).turn, 2);
}

/// An agent that never knows its conversation.
#[derive(Debug)]
struct Forgetful;

impl Dialect for Forgetful {
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn restore(&mut self, _: serde_json::Value) -> bool {
        true
    }

    fn provider(&self) -> &str {
        "forgetful"
    }

    fn launch(&mut self, _start: Start<'_>) -> Launch {
        Launch::default()
    }

    fn parse(&mut self, _line: &serde_json::Value) -> ParsedLine {
        ParsedLine { outputs: vec![AgentOutput::ResumeRefused], is_progress: true }
    }

    fn interrupt(&mut self) -> Halt {
        Halt::Signal(Signal::Int)
    }

    fn exited(&mut self, _exit: Exit, _tail: &str) -> Vec<AgentOutput> {
        vec![AgentOutput::ResumeRefused]
    }
}

#[test]
fn a_conversation_that_is_refused_again_and_again_is_begun_anew_once() {
    let mut rig = Rig::of(Box::new(Forgetful), &Config::default(), Some("id-1"));
    rig.start("one");
    launch_in(&rig.exit(1));
    assert_eq!(failure(&rig.exit(1)), "The agent does not know its conversation.");
    let mut rig = Rig::of(Box::new(Forgetful), &Config::default(), Some("id-1"));
    rig.start("one");
    assert_eq!(rig.line("{}").last(), Some(&Output::Signal(Signal::Term)));
    launch_in(&rig.exit(143));
    let outputs = rig.line("{}");
    failure(&outputs);
    assert_eq!(outputs.last(), Some(&Output::Signal(Signal::Term)));
}

/// The words of each program, as recorded, and its flag to resume a conversation.
#[test]
fn a_conversation_that_is_unknown_on_the_error_output_alone_is_begun_anew() {
    for (provider, words, flag) in [
        ("claude", "No conversation found with session ID: 4f1c0a52\n", "--resume"),
        ("gemini", "Error resuming session: Invalid session identifier \"7c1f\".\n", "--resume"),
        ("opencode", "Error: Session not found: ses_4d1b\n", "--session"),
    ] {
        let mut rig = Rig::resuming(provider, "id-1");
        assert!(rig.start("go on").args.iter().any(|arg| arg.starts_with(flag)), "{provider}");
        rig.stderr(words);
        let outputs = rig.exit(1);
        assert_eq!(ends(&outputs), [], "{provider}");
        let anew = launch_in(&outputs);
        assert!(!anew.args.iter().any(|arg| arg.starts_with(flag)), "{provider}");
    }
}

#[test]
fn a_second_interrupt_kills() {
    let mut rig = claude();
    rig.interrupt();
    let outputs = rig.interrupt();
    assert_eq!(outputs[0], Output::Kill);
    assert_eq!(end(&outputs).outcome, TurnOutcome::Interrupted);
    assert_eq!(rig.handle(Input::Interrupt), Err(TurnsError::NoTurn));
}

#[test]
fn an_interrupt_that_is_not_obeyed_kills_after_ten_seconds() {
    let mut rig = claude();
    rig.interrupt();
    assert_eq!(rig.pass(9 * SECOND), []);
    let outputs = rig.pass(SECOND);
    assert_eq!(outputs[0], Output::Kill);
    assert_eq!(end(&outputs).outcome, TurnOutcome::Interrupted);
}

#[test]
fn a_turn_that_waits_for_an_old_process_can_be_interrupted() {
    let mut rig = claude();
    rig.interrupt();
    rig.interrupt();
    rig.prompt("two");
    assert_eq!(end(&rig.interrupt()).outcome, TurnOutcome::Interrupted);
    assert_eq!(rig.exit(137), [], "and is not started later");
}

#[test]
fn a_waiting_prompt_runs_after_an_interrupt() {
    let mut rig = claude();
    rig.prompt("two");
    rig.interrupt();
    rig.interrupt();
    let launch = launch_in(&rig.exit(137));
    assert!(String::from_utf8(launch.stdin.unwrap()).unwrap().contains("two"));
}

#[test]
fn a_program_that_cannot_be_started_fails_the_turn_and_the_next_tries_again() {
    let mut rig = claude();
    let outputs = rig.handle(Input::SpawnFailed("claude: not found".into())).unwrap();
    assert_eq!(failure(&outputs), "claude: not found");
    rig.start("two");
}

#[test]
fn a_stopped_session_ends_its_turn_drops_what_waits_and_takes_no_more() {
    let mut rig = claude();
    rig.prompt("two");
    let outputs = rig.handle(Input::Stop).unwrap();
    assert_eq!(end(&outputs).outcome, TurnOutcome::Interrupted);
    assert_eq!(notices(&outputs), ["1 prompts that waited have not begun."]);
    assert_eq!(outputs.last(), Some(&Output::CloseStdin));
    let late = Input::Prompt { text: "three".into() };
    assert_eq!(rig.handle(late), Err(TurnsError::Stopped));
    assert_eq!(rig.pass(10 * SECOND), [Output::Signal(Signal::Term), Output::Kill]);
    assert_eq!(rig.exit(137), []);
    assert_eq!(rig.turns.poll_timeout(), None);
}

#[test]
fn a_session_that_is_stopped_twice_is_killed() {
    let mut rig = claude();
    rig.handle(Input::Stop).unwrap();
    assert_eq!(rig.handle(Input::Stop), Ok(vec![Output::Kill]));
}

#[test]
fn a_process_that_dies_by_a_signal_says_which() {
    let mut rig = claude();
    let outputs = rig.handle(Input::Exited(Exit::Signal(11))).unwrap();
    assert!(failure(&outputs).contains("signal 11"));
    assert_eq!(ends(&rig.pass(Duration::from_secs(3600))), []);
}

#[test]
fn output_between_turns_keeps_a_process_warm() {
    let mut rig = claude();
    rig.line(DONE);
    rig.pass(14 * MINUTE);
    rig.line(r#"{"type":"system","subtype":"task_notification"}"#);
    assert_eq!(rig.pass(14 * MINUTE), []);
    assert_eq!(rig.pass(MINUTE), [Output::CloseStdin]);
}

#[test]
fn an_id_that_could_be_a_flag_is_never_resumed() {
    let mut rig = Rig::resuming("codex", "--dangerously-bypass-approvals-and-sandbox");
    assert!(!rig.start("x").args.contains(&"resume".to_owned()));
    let line = r#"{"type":"thread.started","thread_id":"--yolo"}"#;
    assert_eq!(rig.line(line), []);
}

#[test]
fn the_running_turn_ends_and_its_process_too_and_prompts_wait() {
    let mut rig = claude();
    rig.prompt("two");
    assert_eq!(rig.handle(Input::Freeze).unwrap(), []);
    rig.prompt("three");
    assert!(!rig.turns.is_at_rest());
    let outputs = rig.line(DONE);
    assert_eq!(end(&outputs).turn, 1);
    assert_eq!(outputs.last(), Some(&Output::CloseStdin), "{outputs:?}");
    assert!(!rig.turns.is_at_rest(), "the process has not ended");
    assert_eq!(rig.exit(0), []);
    assert!(rig.turns.is_at_rest());
    assert_eq!(waiting(&rig), ["two", "three"]);
}

#[test]
fn the_idle_process_of_a_frozen_session_is_closed_at_once() {
    let mut rig = claude();
    rig.line(DONE);
    assert_eq!(rig.handle(Input::Freeze).unwrap(), [Output::CloseStdin]);
    rig.exit(0);
    assert!(rig.turns.is_at_rest());
}

#[test]
fn a_session_that_is_frozen_no_more_goes_on_with_what_waits() {
    let mut rig = Rig::new("claude");
    rig.handle(Input::Freeze).unwrap();
    assert!(rig.turns.is_at_rest());
    assert_eq!(rig.prompt("one"), []);
    let outputs = rig.handle(Input::Thaw).unwrap();
    assert_eq!(events(&outputs), [begun(1, "one")]);
    assert!(!rig.turns.is_at_rest() && waiting(&rig).is_empty());
}

#[test]
fn no_more_prompts_wait_in_a_frozen_session_than_in_any_other() {
    let mut rig = Rig::new("claude");
    rig.handle(Input::Freeze).unwrap();
    (0..MAX_QUEUED).for_each(|_| drop(rig.prompt("x")));
    let more = rig.handle(Input::Prompt { text: "x".to_owned() });
    assert_eq!(more, Err(TurnsError::QueueFull));
}
