//! A session whose state is kept and restored goes on as if nothing had been.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{
    histories::{PROVIDERS, Step, step},
    rig::{Rig, asks, end, settings, somebody, written},
};
use crate::agent::{Config, Input, Output, Turns, open};

/// The same session with another driver, as of this turn.
fn restored(turns: &Turns, provider: &str, now: Instant) -> Option<Turns> {
    let kept = serde_json::to_string(&turns.saved_state(now)).unwrap();
    let config = Config { request_prefix: "s".to_owned(), turn: turns.number, ..Config::default() };
    let dialect = open(provider, &[somebody()], settings()).unwrap();
    let waiting = turns.waiting().map(str::to_owned).collect();
    Turns::restored(config, dialect, waiting, serde_json::from_str(&kept).unwrap(), now)
}

fn outputs(turns: &mut Turns) -> Vec<Output> {
    std::iter::from_fn(|| turns.poll_output()).collect()
}

fn take(turns: &mut Turns, now: &mut Instant, step: &Step, at: usize) -> Vec<Output> {
    match step {
        Step::Do(Input::Prompt { .. }) => {
            drop(turns.handle(*now, Input::Prompt { text: format!("prompt {at}") }));
        }
        // A driver says these only where they can be.
        Step::Do(Input::Exited(_)) if !turns.has_process() => {}
        Step::Do(Input::SpawnFailed(_)) => {}
        Step::Do(input) => drop(turns.handle(*now, input.clone())),
        Step::Decide(allow) => {
            if let Some(open) = turns.pending().first() {
                let (request_id, allow) = (open.request_id.clone(), *allow);
                let decided = Input::Permission { request_id, allow, message: None };
                turns.handle(*now, decided).unwrap();
            }
        }
        Step::Pass(seconds) => {
            *now += Duration::from_secs(*seconds);
            turns.handle_timeout(*now);
        }
    }
    outputs(turns)
}

proptest! {
    #[test]
    fn one_that_is_restored_after_each_step_does_what_one_does_that_never_is(
        provider in prop::sample::select(&PROVIDERS[..]),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut one = Rig::new(provider).turns;
        let mut other = Rig::new(provider).turns;
        let begun = Instant::now();
        let (mut now, mut later) = (begun, begun);
        for (at, step) in steps.iter().enumerate() {
            let done = take(&mut one, &mut now, step, at);
            prop_assert_eq!(take(&mut other, &mut later, step, at), done, "{:?}", step);
            other = restored(&other, provider, later).expect("it is the same session");
        }
    }
}

#[test]
fn a_request_that_was_open_is_answered_in_the_restored_session_and_the_turn_ends() {
    let mut rig = Rig::new("claude");
    rig.start("do it");
    let ask = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"a":1}}}"#;
    let asked = asks(&rig.line(ask));
    rig.turns = restored(&rig.turns, "claude", rig.now).unwrap();
    assert_eq!(rig.turns.pending()[0].request_id, asked[0]);
    let [answer] = &written(&rig.decide(&asked[0], true))[..] else { panic!() };
    assert_eq!(answer["response"]["response"]["updatedInput"]["a"], 1);
    let ended = rig.line(r#"{"type":"result","subtype":"success","result":"Done."}"#);
    assert_eq!(end(&ended).text.as_deref(), Some("Done."));
}

#[test]
fn the_state_of_another_program_or_turn_is_not_taken() {
    let mut rig = Rig::new("claude");
    rig.start("do it");
    assert!(restored(&rig.turns, "codex", rig.now).is_none());
    let kept = rig.turns.saved_state(rig.now);
    let dialect = open("claude", &[], settings()).unwrap();
    let later = Config { turn: 2, ..Config::default() };
    assert!(Turns::restored(later, dialect, Vec::new(), kept, rig.now).is_none());
}
