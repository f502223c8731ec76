//! Waiting for results.

use super::*;

/// Waits for a minute until the time-out; returns the id to resume the wait by.
fn timed_out(shell: &mut Shell, workers: Option<&[Uuid]>) -> Uuid {
    let waiting = shell.wait_for(workers, 60).unwrap();
    shell.pass(60);
    let answer = shell.answer_of(&waiting).unwrap();
    assert!(answer.timed_out());
    answer.wait_id.unwrap()
}

fn now(shell: &Shell, waiting: &Waiting) -> Answer {
    shell.answer_of(waiting).unwrap_or_else(|| panic!("{waiting:?} is not answered"))
}

#[test]
fn a_wait_ends_when_all_that_were_given_something_have_a_result() {
    let mut shell = Shell::with_team(Limits::default());
    shell.join(id(103)).unwrap();
    shell.assign(ANN, "a");
    shell.assign(BOB, "b");
    let waiting = shell.wait_for(None, 60).unwrap();
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "a is done");
    assert_eq!(shell.answer_of(&waiting), None);
    shell.begin(BOB, 1);
    shell.report(BOB, "b is done").unwrap();
    let answer = now(&shell, &waiting);
    assert_eq!(texts(&answer), [(ANN, true, "a is done"), (BOB, true, "b is done")]);
    assert_eq!((answer.pending.len(), answer.wait_id), (0, None));
    assert_eq!(shell.teams.poll_timeout(), None);
    assert!(!shell.stored.keys().any(|key| matches!(key.part, Part::Wait(_))));
    // A second wait gets the same answer: a caller may have lost the first one.
    let again = shell.wait_for(None, 60).unwrap();
    assert_eq!(now(&shell, &again), answer);
    shell.check();
}

#[test]
fn without_anything_to_wait_for_the_answer_comes_at_once() {
    let mut shell = Shell::with_team(Limits::default());
    let waiting = shell.wait_for(None, 60).unwrap();
    let answer = now(&shell, &waiting);
    assert_eq!((answer.finished, answer.pending, answer.wait_id), (vec![], vec![], None));
}

#[test]
fn a_named_worker_is_awaited_also_before_it_was_given_anything() {
    let mut shell = Shell::with_team(Limits::default());
    let waiting = shell.wait_for(Some(&[ANN, ANN]), 60).unwrap();
    shell.start(ANN, 1);
    shell.complete(ANN, 1, "a person asked");
    let answer = now(&shell, &waiting);
    assert_eq!(texts(&answer), [(ANN, true, "a person asked")]);
}

#[test]
fn only_workers_of_the_team_are_waited_for() {
    let mut shell = Shell::with_team(Limits::default());
    let leads = TeamError::NotAWorker { session: LEADER, team: TEAM };
    assert_eq!(shell.wait_for(Some(&[ANN, LEADER]), 60), Err(leads));
    let stranger = TeamError::NotMember { session: id(9), team: TEAM };
    assert_eq!(shell.wait_for(Some(&[id(9)]), 60), Err(stranger));
    let unknown = TeamError::UnknownWait(id(9));
    assert_eq!(shell.resume(id(9), 60), Err(unknown));
    assert_eq!(shell.teams.poll_timeout(), None);
    shell.check();
}

#[test]
fn a_wait_that_timed_out_is_resumed_and_has_lost_no_result() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    shell.assign(BOB, "b");
    let wait = timed_out(&mut shell, None);
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "a is done");
    // Later results do not belong to the wait.
    shell.assign(ANN, "more");
    shell.begin(ANN, 2);
    shell.complete(ANN, 2, "more is done");
    shell.restart();
    let waiting = shell.resume(wait, 60).unwrap();
    assert_eq!(shell.answer_of(&waiting), None);
    shell.begin(BOB, 1);
    shell.complete(BOB, 1, "b is done");
    let answer = now(&shell, &waiting);
    assert_eq!(texts(&answer), [(ANN, true, "a is done"), (BOB, true, "b is done")]);
    shell.assign(BOB, "another");
    shell.begin(BOB, 2);
    shell.complete(BOB, 2, "another is done");
    for _ in 0..2 {
        let again = shell.resume(wait, 60).unwrap();
        assert_eq!(now(&shell, &again), answer);
        shell.check();
        shell.restart();
    }
}

#[test]
fn a_wait_is_completed_also_while_nobody_waits() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let wait = timed_out(&mut shell, Some(&[ANN]));
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "done");
    shell.pass(23 * 60 * 60);
    let waiting = shell.resume(wait, 0).unwrap();
    assert_eq!(texts(&now(&shell, &waiting)), [(ANN, true, "done")]);
}

#[test]
fn a_turn_that_goes_on_is_awaited_even_where_an_older_result_is_there() {
    let mut shell = Shell::with_team(Limits::default());
    shell.complete(ANN, 1, "old");
    shell.start(ANN, 2);
    let wait = timed_out(&mut shell, Some(&[ANN]));
    let waiting = shell.resume(wait, 60).unwrap();
    assert_eq!(shell.answer_of(&waiting), None);
    shell.complete(ANN, 2, "new");
    assert_eq!(texts(&now(&shell, &waiting)), [(ANN, true, "new")]);
}

#[test]
fn a_handoff_has_the_result_of_its_own_prompt() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.assign(ANN, "audit");
    let waiting = shell.wait_for(Some(&[ANN]), 60).unwrap();
    shell.say(BOB, Some(ANN), "by the way").unwrap();
    shell.complete(ANN, 1, "not this");
    assert_eq!(shell.answer_of(&waiting), None);
    shell.begin(ANN, 2);
    shell.complete(ANN, 2, "audited");
    assert!(shell.pending(ANN));
    assert_eq!(texts(&now(&shell, &waiting)), [(ANN, true, "audited")]);
}

#[test]
fn the_end_of_a_session_ends_the_waits_for_it() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let for_ann = shell.wait_for(Some(&[ANN]), 60).unwrap();
    let for_bob = shell.wait_for(Some(&[BOB]), 60).unwrap();
    shell.gone(ANN);
    shell.gone(BOB);
    let failed = "the session ended before it gave a result";
    assert_eq!(texts(&now(&shell, &for_ann)), [(ANN, false, failed)]);
    let nothing = "the session ended without a result";
    assert_eq!(texts(&now(&shell, &for_bob)), [(BOB, false, nothing)]);
    let later = shell.wait_for(Some(&[BOB]), 60).unwrap();
    assert_eq!(texts(&now(&shell, &later)), [(BOB, false, nothing)]);
    assert_eq!(shell.results.len(), 1);
    shell.check();
}

#[test]
fn a_wait_without_time_is_a_look_that_can_be_resumed() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let waiting = shell.wait_for(None, 0).unwrap();
    let Waiting::Answered(answer) = waiting else { panic!("{waiting:?}") };
    assert_eq!((answer.pending, shell.teams.poll_timeout()), (vec![ANN], None));
    assert!(shell.stored.contains_key(&Key::wait(TEAM, answer.wait_id.unwrap())));
    assert!(shell.resume(answer.wait_id.unwrap(), 60).is_ok());
}

#[test]
fn several_callers_of_a_wait_each_have_their_time_and_the_same_answer() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let wait = timed_out(&mut shell, None);
    let callers = [10, 20, 30].map(|seconds| shell.resume(wait, seconds).unwrap());
    shell.pass(15);
    let answered = callers.iter().filter(|caller| shell.answer_of(caller).is_some());
    assert_eq!(answered.count(), 1);
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "done");
    assert!(now(&shell, &callers[0]).timed_out());
    assert_eq!(now(&shell, &callers[1]), now(&shell, &callers[2]));
    assert_eq!(texts(&now(&shell, &callers[1])), [(ANN, true, "done")]);
    assert_eq!(shell.teams.poll_timeout(), None);
    shell.check();
}

#[test]
fn a_cancelled_wait_is_not_answered_and_leaves_nothing() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let Waiting::Until(caller) = shell.wait_for(None, 60).unwrap() else { panic!() };
    shell.act(|teams, _| teams.stop_waiting(caller));
    assert_eq!(shell.teams.poll_timeout(), None);
    assert!(shell.teams.waits.is_empty());
    shell.pass(60);
    assert!(shell.answers.is_empty());
    assert_eq!(shell.teams.stop_waiting(caller), []);
    shell.check();
}

#[test]
fn a_wait_lasts_a_day_at_most() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let waiting = shell.wait_for(None, u64::MAX).unwrap();
    shell.pass(24 * 60 * 60 - 1);
    assert_eq!(shell.answer_of(&waiting), None);
    shell.pass(1);
    assert!(now(&shell, &waiting).timed_out());
}

#[test]
fn one_caller_too_many_of_a_wait_is_refused() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let wait = timed_out(&mut shell, None);
    for _ in 0..16 {
        shell.resume(wait, 60).unwrap();
    }
    assert_eq!(shell.resume(wait, 60), Err(TeamError::TooManyCallers { wait, max: 16 }));
}

#[test]
fn one_wait_too_many_is_refused_while_somebody_waits_for_each() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    for _ in 0..1_024 {
        shell.wait_for(None, 60).unwrap();
    }
    assert_eq!(shell.wait_for(None, 60), Err(TeamError::TooManyWaits { max: 1_024 }));
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "done");
    assert_eq!(shell.answers.len(), 1_024);
    shell.check();
}

#[test]
fn one_parked_wait_too_many_takes_the_place_of_a_collected_one_and_then_of_the_oldest() {
    let limits = Limits { waits: 3, ..Limits::default() };
    let mut shell = Shell::with_team(limits);
    shell.assign(BOB, "b");
    let oldest = timed_out(&mut shell, Some(&[BOB]));
    shell.assign(ANN, "a");
    let collected = timed_out(&mut shell, Some(&[ANN]));
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "first");
    let waiting = shell.resume(collected, 60).unwrap();
    assert_eq!(texts(&now(&shell, &waiting)), [(ANN, true, "first")]);
    shell.complete(ANN, 2, "second");
    assert!(shell.stored.contains_key(&Key::result(TEAM, ANN, 1)));
    let third = timed_out(&mut shell, Some(&[BOB]));
    let fourth = timed_out(&mut shell, Some(&[BOB]));
    assert_eq!(shell.resume(collected, 60), Err(TeamError::UnknownWait(collected)));
    assert!(!shell.stored.contains_key(&Key::result(TEAM, ANN, 1)));
    shell.check();
    let fifth = timed_out(&mut shell, Some(&[BOB]));
    assert_eq!(shell.resume(oldest, 60), Err(TeamError::UnknownWait(oldest)));
    for wait in [third, fourth, fifth] {
        assert!(shell.resume(wait, 60).is_ok());
    }
    shell.check();
}

#[test]
fn a_wait_of_another_team_is_unknown() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "a");
    let wait = timed_out(&mut shell, None);
    shell.create(id(2), id(200)).unwrap();
    let (team, new_id) = (id(2), id(8));
    let ask = WaitFor { team, workers: None, timeout: Duration::ZERO, resume: Some(wait), new_id };
    let now = shell.now;
    assert_eq!(shell.teams.wait(&ask, now, 0), Err(TeamError::UnknownWait(wait)));
}
