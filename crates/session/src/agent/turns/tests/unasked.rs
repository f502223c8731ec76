//! Turns that no prompt began: they are shown, but they answer no prompt.

use protocol::workspace::{AgentEvent, TurnOutcome};
use serde_json::{Value, json};

use super::rig::{MINUTE, Rig, SECOND, end, ends, events, notices, written};
use crate::agent::Input;

const ID: &str = "4f1c0a52-9d3e-4a6b-8c1d-2e7f90b1a3c4";

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": ID})
}

fn said(text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"type": "assistant", "message": {"role": "assistant", "content": content}, "parent_tool_use_id": null})
}

/// The end of a turn, at this total cost.
fn result(text: &str, cost: f64, more: &Value) -> Value {
    let mut line = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": ID,
        "total_cost_usd": cost, "usage": {"input_tokens": 10, "output_tokens": 1},
    });
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn unasked() -> Value {
    json!({"origin": {"kind": "task-notification"}})
}

fn lines(rig: &mut Rig, lines: &[Value]) -> Vec<crate::agent::Output> {
    lines.iter().flat_map(|line| rig.line(&line.to_string())).collect()
}

/// A session whose first turn is done, at a cost of 0.5.
fn warm() -> Rig {
    let mut rig = Rig::new("claude");
    rig.start("hello");
    lines(&mut rig, &[init(), result("Hi.", 0.5, &json!({}))]);
    rig
}

/// Gives a prompt. Returns its id.
fn ask(rig: &mut Rig, text: &str) -> String {
    written(&rig.prompt(text))[0]["uuid"].as_str().unwrap().to_owned()
}

/// The texts of these outputs, and for each whether it belongs to no prompt.
fn texts(outputs: &[crate::agent::Output]) -> Vec<(String, bool)> {
    let texts = events(outputs).into_iter().filter_map(|event| match event {
        AgentEvent::Text { text, unasked, .. } => Some((text, unasked)),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_turn_that_began_by_itself_ends_no_prompts_turn_in_any_version() {
    // The newest versions name the prompt, older ones the origin, the oldest neither.
    for names in [unasked(), json!({"user_message_uuids": ["another"]}), json!({})] {
        let mut rig = warm();
        let outputs = lines(&mut rig, &[init(), said("The task is done.")]);
        assert_eq!(texts(&outputs), [("The task is done.".to_owned(), true)]);
        ask(&mut rig, "What is 2+2?");
        let outputs = lines(&mut rig, &[said("So.")]);
        assert_eq!(texts(&outputs), [("So.".to_owned(), true)]);
        assert_eq!(ends(&lines(&mut rig, &[result("So.", 0.75, &names)])), [], "{names}");
        let outputs = lines(&mut rig, &[init(), said("4"), result("4", 1.0, &json!({}))]);
        assert_eq!(texts(&outputs), [("4".to_owned(), false)]);
        let end = end(&outputs);
        assert_eq!((end.turn, end.text.as_deref()), (2, Some("4")));
        // The usage of a turn that no prompt began is reported with the next prompt's turn.
        assert_eq!((end.usage.cost_usd, end.usage.input_tokens), (Some(0.5), 20));
    }
}

#[test]
fn a_turn_that_comes_before_a_prompt_which_is_given_already_does_not_end_it() {
    let mut rig = Rig::resuming("claude", ID);
    rig.start("go on");
    // A notification from before the prompt begins a turn, which is empty or has text.
    assert_eq!(ends(&lines(&mut rig, &[init(), result("", 0.0, &unasked())])), []);
    let outputs =
        lines(&mut rig, &[init(), said("It is done."), result("It is done.", 0.1, &unasked())]);
    assert_eq!((ends(&outputs), notices(&outputs).len()), (vec![], 1));
    let outputs = lines(&mut rig, &[init(), said("Here."), result("Here.", 0.2, &json!({}))]);
    assert_eq!(end(&outputs).text.as_deref(), Some("Here."));
}

#[test]
fn a_prompt_that_is_taken_up_in_such_a_turn_is_answered_by_its_result() {
    let echo = |id: &str| json!({"type": "user", "isReplay": true, "uuid": id, "message": {"role": "user", "content": "?"}});
    let named = |id: &str| {
        let mut names = unasked();
        names["user_message_uuids"] = json!(["other", id]);
        names
    };
    for by_name in [true, false] {
        let mut rig = warm();
        lines(&mut rig, &[init(), said("Working.")]);
        let id = ask(&mut rig, "What is 2+2?");
        let outputs = match by_name {
            true => lines(&mut rig, &[said("4"), result("4", 0.6, &named(&id))]),
            false => lines(&mut rig, &[echo(&id), said("4"), result("4", 0.6, &unasked())]),
        };
        assert_eq!(end(&outputs).text.as_deref(), Some("4"));
    }
    let mut rig = warm();
    lines(&mut rig, &[init(), said("Working.")]);
    ask(&mut rig, "What is 2+2?");
    let outputs = lines(&mut rig, &[echo("another"), said("so"), result("so", 0.6, &unasked())]);
    assert_eq!(ends(&outputs), []);
}

#[test]
fn what_is_not_a_turn_of_the_agents_own_changes_nothing() {
    let mut rig = warm();
    let mut helper = said("A helper goes on in the background.");
    helper["parent_tool_use_id"] = json!("toolu_1");
    let task = json!({"type": "system", "subtype": "task_notification", "task_id": "b"});
    lines(&mut rig, &[helper, task, result("stray", 0.5, &json!({}))]);
    ask(&mut rig, "more");
    for human in [json!({}), json!({"origin": {"kind": "human"}})] {
        let outputs = lines(&mut rig, &[init(), result("Yes.", 0.6, &human)]);
        assert_eq!(end(&outputs).text.as_deref(), Some("Yes."));
        ask(&mut rig, "more");
    }
}

#[test]
fn a_result_that_is_too_long_to_be_read_ends_the_turn_only_of_its_prompt() {
    let long = |origin: &str| {
        let text = "x".repeat(1024 * 1024);
        format!(r#"{{"type":"result","subtype":"success",{origin}"result":"{text}"}}"#)
    };
    let mut rig = warm();
    ask(&mut rig, "more");
    let unasked = long(r#""origin":{"kind":"task-notification"},"#);
    assert_eq!(ends(&rig.line(&unasked)), []);
    assert_eq!(end(&rig.line(&long(""))).turn, 2);
}

#[test]
fn an_interrupt_reaches_the_prompt_that_waits_behind_such_a_turn() {
    let mut rig = warm();
    lines(&mut rig, &[init(), said("Working.")]);
    ask(&mut rig, "count to a million");
    assert_eq!(written(&rig.interrupt())[0]["request"]["subtype"], "interrupt");
    let mut aborted = unasked();
    aborted["terminal_reason"] = json!("aborted_streaming");
    assert_eq!(ends(&lines(&mut rig, &[result("", 0.5, &aborted)])), []);
    let outputs = lines(&mut rig, &[init()]);
    assert_eq!(written(&outputs)[0]["request"]["subtype"], "interrupt");
    let aborted = json!({"terminal_reason": "aborted_streaming"});
    let outputs = lines(&mut rig, &[result("", 0.5, &aborted)]);
    assert_eq!(end(&outputs).outcome, TurnOutcome::Interrupted);
}

#[test]
fn a_turn_that_nobody_asked_for_can_be_interrupted() {
    let mut rig = warm();
    assert!(rig.handle(Input::Interrupt).is_err());
    lines(&mut rig, &[init()]);
    assert_eq!(written(&rig.interrupt())[0]["request"]["subtype"], "interrupt");
    lines(&mut rig, &[result("", 0.5, &unasked())]);
    assert!(rig.handle(Input::Interrupt).is_err());
}

#[test]
fn a_prompt_behind_such_a_turn_waits_as_long_as_that_gets_on() {
    let mut rig = warm();
    lines(&mut rig, &[init()]);
    ask(&mut rig, "more");
    for _ in 0..5 {
        assert_eq!(ends(&rig.pass(9 * MINUTE)), []);
        lines(&mut rig, &[said("Still at it.")]);
    }
    assert_eq!(end(&rig.pass(10 * MINUTE + SECOND)).outcome, TurnOutcome::Failed);
}

#[test]
fn each_prompt_has_an_id_of_its_own_which_stays_when_the_turn_is_begun_again() {
    let mut rig = warm();
    let first = ask(&mut rig, "same");
    lines(&mut rig, &[init(), result("", 0.5, &json!({}))]);
    let second = ask(&mut rig, "same");
    assert_ne!(first, second);
    assert!([&first, &second].iter().all(|id| uuid::Uuid::parse_str(id).is_ok()));
}

#[test]
fn text_without_a_prompt_answers_none_whatever_the_dialect() {
    let mut rig = Rig::new("somebody");
    rig.start("hello");
    rig.line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#);
    rig.line(r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"own"}}"#);
    let chunk = |session: &str, text: &str| {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"text": text}});
        let params = json!({"sessionId": session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    };
    // Another session of the program is not this conversation.
    let outputs = lines(&mut rig, &[chunk("own", "Hi."), chunk("helper", "inner")]);
    assert_eq!(texts(&outputs), [("Hi.".to_owned(), false)]);
    let outputs = rig.line(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(end(&outputs).text.as_deref(), Some("Hi."));
    let outputs = lines(&mut rig, &[chunk("own", "By the way.")]);
    assert_eq!(texts(&outputs), [("By the way.".to_owned(), true)]);
    // A repeated answer ends no other turn.
    rig.prompt("more");
    let again = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;
    assert_eq!(ends(&rig.line(again)), []);
    let outputs = lines(&mut rig, &[chunk("own", "More.")]);
    assert_eq!(texts(&outputs), [("More.".to_owned(), false)]);
    let outputs = rig.line(r#"{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(end(&outputs).text.as_deref(), Some("More."));
}

#[test]
fn the_text_of_another_session_of_opencode_is_no_answer() {
    let mut rig = Rig::new("opencode");
    rig.start("hello");
    let text = |session: &str, text: &str| json!({"type": "text", "sessionID": session, "part": {"text": text}});
    let outputs = lines(&mut rig, &[text("own", "Hi."), text("helper", "inner")]);
    assert_eq!(texts(&outputs), [("Hi.".to_owned(), false)]);
    let stop = json!({"type": "step_finish", "sessionID": "own", "part": {"reason": "stop"}});
    lines(&mut rig, &[stop]);
    assert_eq!(end(&rig.exit(0)).text.as_deref(), Some("Hi."));
}
