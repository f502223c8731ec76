//! Results of turns.

use super::*;

#[test]
fn a_turn_without_a_report_has_its_last_words_as_its_result() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "audit");
    assert_eq!(shell.offers[&ANN].kind, Kind::Assignment);
    assert!(shell.pending(ANN));
    shell.begin(ANN, 1);
    assert!(shell.pending(ANN));
    shell.complete(ANN, 1, "all good");
    assert_eq!(shell.results, [(ANN, true, "all good".to_owned())]);
    assert_eq!((shell.pending(ANN), shell.completed), (false, 1));
    shell.complete(ANN, 1, "all good");
    shell.start(ANN, 1);
    assert_eq!((shell.results.len(), shell.pending(ANN)), (1, false));
    shell.check();
}

#[test]
fn a_report_is_the_result_of_its_turn_however_often_it_is_said() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "audit");
    shell.begin(ANN, 1);
    assert_eq!(shell.report(ANN, "two faults"), Ok("two faults".to_owned()));
    assert!(!shell.pending(ANN));
    assert_eq!(shell.report(ANN, "two faults"), Ok("two faults".to_owned()));
    assert_eq!(shell.report(ANN, "three"), Ok("two faults".to_owned()));
    shell.complete(ANN, 1, "bye");
    assert_eq!(shell.report(ANN, "late"), Ok("two faults".to_owned()));
    assert_eq!(shell.results, [(ANN, true, "two faults".to_owned())]);
    assert_eq!(shell.completed, 1);
    shell.restart();
    assert_eq!(shell.report(ANN, "later"), Ok("two faults".to_owned()));
    shell.start(ANN, 2);
    assert_eq!(shell.report(ANN, "three"), Ok("three".to_owned()));
    assert_eq!(shell.results.len(), 2);
    shell.check();
}

#[test]
fn a_late_report_after_last_words_changes_nothing() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.complete(ANN, 1, "words");
    assert_eq!(shell.report(ANN, "late"), Ok("words".to_owned()));
    assert_eq!(shell.results.len(), 1);
}

#[test]
fn turns_that_fail_or_are_interrupted_have_no_success() {
    let mut shell = Shell::with_team(Limits::default());
    shell.end(ANN, 1, TurnOutcome::Failed, "no such model");
    shell.end(BOB, 4, TurnOutcome::Interrupted, "");
    let expected = [(ANN, false, "no such model".to_owned()), (BOB, false, String::new())];
    assert_eq!(shell.results, expected);
}

#[test]
fn a_team_is_completed_when_its_last_pending_worker_has_its_result() {
    let mut shell = Shell::with_team(Limits::default());
    shell.say(LEADER, None, "go").unwrap();
    shell.begin(ANN, 1);
    shell.begin(BOB, 1);
    shell.complete(ANN, 1, "a");
    assert_eq!(shell.completed, 0);
    shell.report(BOB, "b").unwrap();
    assert_eq!(shell.completed, 1);
    shell.complete(BOB, 1, "bye");
    assert_eq!(shell.completed, 1);
}

#[test]
fn a_turn_of_its_own_does_not_answer_what_still_waits() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.assign(ANN, "audit");
    shell.complete(ANN, 1, "something else");
    assert_eq!((shell.pending(ANN), shell.completed), (true, 0));
    shell.begin(ANN, 2);
    shell.complete(ANN, 2, "audited");
    assert_eq!((shell.pending(ANN), shell.completed), (false, 1));
    shell.check();
}

#[test]
fn a_worker_without_turns_has_a_result_for_all_that_reached_it() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "one");
    shell.deliver(ANN);
    assert!(shell.pending(ANN));
    shell.report(ANN, "done").unwrap();
    assert!(!shell.pending(ANN));
    shell.report(ANN, "done").unwrap();
    assert_eq!(shell.results.len(), 1);
    shell.assign(ANN, "two");
    shell.deliver(ANN);
    shell.report(ANN, "done").unwrap();
    assert_eq!(shell.results.len(), 2);
    shell.report(ANN, "a person asked for more").unwrap();
    assert_eq!(shell.results.len(), 3);
    shell.check();
}

#[test]
fn unfinished_work_of_an_ended_session_fails_once() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "audit");
    shell.gone(ANN);
    let expected = (ANN, false, "the session ended before it gave a result".to_owned());
    assert_eq!(shell.results, std::slice::from_ref(&expected));
    assert_eq!(shell.completed, 1);
    shell.gone(ANN);
    shell.complete(ANN, 1, "from beyond");
    assert_eq!(shell.report(ANN, "from beyond"), Ok(expected.2));
    assert_eq!(shell.results.len(), 1);
    // A session without work has not failed.
    shell.gone(BOB);
    assert_eq!(shell.report(BOB, "what?"), Err(TeamError::Gone(BOB)));
    assert_eq!(shell.results.len(), 1);
    shell.check();
}

#[test]
fn a_session_that_ends_after_its_report_has_not_failed() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.report(ANN, "done").unwrap();
    shell.gone(ANN);
    assert_eq!(shell.results, [(ANN, true, "done".to_owned())]);
    shell.check();
}

#[test]
fn a_turn_with_a_report_has_no_second_result_when_its_session_ends() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.report(ANN, "done").unwrap();
    shell.assign(ANN, "more");
    shell.gone(ANN);
    assert_eq!(shell.results.len(), 2, "the message got no answer");
    let turns = shell.stored.values().filter_map(|record| match record {
        Record::Result { result, .. } => Some((result.number, result.turn)),
        _ => None,
    });
    assert_eq!(turns.collect::<Vec<_>>(), [(2, None)]);
    shell.check();
}

#[test]
fn work_in_progress_at_the_daemons_stop_has_failed() {
    let mut shell = Shell::with_team(Limits::default());
    shell.join(id(103)).unwrap();
    shell.join(id(104)).unwrap();
    shell.say(LEADER, None, "go").unwrap();
    shell.begin(ANN, 1);
    shell.deliver(BOB);
    shell.begin(id(103), 1);
    shell.report(id(103), "reported").unwrap();
    shell.results.clear();
    shell.restart();
    let stopped = "the daemon stopped before this was finished".to_owned();
    assert_eq!(shell.results, [(ANN, false, stopped.clone()), (BOB, false, stopped)]);
    assert!(!shell.pending(ANN) && !shell.pending(BOB) && !shell.pending(id(103)));
    assert!(shell.pending(id(104)));
    shell.restart();
    assert_eq!(shell.results.len(), 2);
    shell.check();
}

#[test]
fn a_turn_that_was_never_said_to_have_ended_fails_when_the_next_begins() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.start(ANN, 3);
    assert_eq!((shell.results[0].0, shell.results[0].1), (ANN, false));
    shell.complete(ANN, 2, "an old turn");
    shell.complete(ANN, 3, "three");
    assert_eq!(shell.results[1..], [(ANN, true, "three".to_owned())]);
    shell.check();
}

#[test]
fn only_workers_of_the_team_report() {
    let mut shell = Shell::with_team(Limits::default());
    let leads = TeamError::NotAWorker { session: LEADER, team: TEAM };
    assert_eq!(shell.report(LEADER, "me"), Err(leads));
    assert!(matches!(shell.report(id(9), "me"), Err(TeamError::NotMember { .. })));
    shell.start(LEADER, 1);
    shell.complete(LEADER, 1, "words");
    shell.complete(id(9), 1, "words");
    assert_eq!(shell.results, []);
}

#[test]
fn a_long_report_is_refused_and_long_last_words_are_cut() {
    let mut shell = Shell::with_team(Limits::default());
    let (what, len, max) = ("result", (1 << 20) + 1, 1 << 20);
    shell.start(ANN, 1);
    let long = "ä".repeat(max);
    assert_eq!(
        shell.report(ANN, &long[..len + 1]),
        Err(TeamError::TooLong { what, len: len + 1, max })
    );
    shell.complete(ANN, 1, &long);
    let result = &shell.results[0].2;
    assert!(result.len() <= max && result.len() > max - 4, "{}", result.len());
    assert!(result.ends_with("too long]") && result.starts_with("ää"));
    shell.start(BOB, 1);
    assert_eq!(shell.report(BOB, &long[..max]).unwrap().len(), max);
    shell.check();
}

#[test]
fn results_are_cut_to_little_when_teams_hold_all_that_they_may() {
    let limits = Limits { held_bytes: 100, ..Limits::default() };
    let mut shell = Shell::with_team(limits);
    shell.complete(ANN, 1, &"x".repeat(100_000));
    assert_eq!(shell.results[0].2.len(), 16 << 10);
}

#[test]
fn only_the_newest_result_is_kept_when_no_wait_needs_another() {
    let mut shell = Shell::with_team(Limits::default());
    for turn in 1..=100 {
        shell.complete(ANN, turn, &format!("turn {turn}"));
    }
    let results = shell.stored.values().filter(|one| matches!(one, Record::Result { .. }));
    assert_eq!(results.count(), 1);
    assert_eq!(shell.report(ANN, "again"), Ok("turn 100".to_owned()));
    assert_eq!(shell.teams.held, "turn 100".len());
    shell.check();
}
