//! A session that begins no further turn, because it moves to another machine.

use super::rig::{Rig, begun, end, events};
use crate::agent::{Input, MAX_QUEUED, Output, TurnsError};

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"id-1","usage":{}}"#;

fn waiting(rig: &Rig) -> Vec<String> {
    rig.turns.waiting().map(str::to_owned).collect()
}

#[test]
fn the_running_turn_ends_and_its_process_too_and_prompts_wait() {
    let mut rig = Rig::new("claude");
    rig.start("one");
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
    let mut rig = Rig::new("claude");
    rig.start("one");
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
