//! Members whose sessions other machines run.

use super::{super::outpost::Report, *};

const CAT: Uuid = id(103);

fn with_cat() -> Shell {
    let mut shell = Shell::with_team(Limits::default());
    shell.act(|teams, at| teams.worker_joined_at(TEAM, CAT, "far", at).unwrap());
    shell.assign(CAT, "work");
    shell
}

fn report(shell: &mut Shell, number: u64, report: Report) {
    shell.act(|teams, at| teams.reported(CAT, number, report, at));
}

fn results_of_cat(shell: &Shell) -> Vec<(bool, &str)> {
    let of_cat = shell.results.iter().filter(|(worker, ..)| *worker == CAT);
    of_cat.map(|(_, success, text)| (*success, text.as_str())).collect()
}

#[test]
fn reports_that_come_again_count_once() {
    let mut shell = with_cat();
    let ended = Report::Ended { turn: 1, completed: true, text: "done".to_owned() };
    let all = [Report::Begun { seq: 1 }, Report::Started { turn: 1 }, ended];
    for _ in 0..2 {
        for (number, one) in (1..).zip(&all) {
            report(&mut shell, number, one.clone());
        }
    }
    assert_eq!(results_of_cat(&shell), [(true, "done")]);
    // A later turn is not failed by an old report of a start that comes again.
    report(&mut shell, 4, Report::Stopped);
    report(&mut shell, 5, Report::Started { turn: 2 });
    report(&mut shell, 4, Report::Stopped);
    report(&mut shell, 6, Report::Ended { turn: 2, completed: true, text: "again".to_owned() });
    assert_eq!(results_of_cat(&shell), [(true, "done"), (true, "again")]);
}

#[test]
fn a_restart_of_the_owner_fails_no_turn_of_another_machine() {
    let mut shell = with_cat();
    report(&mut shell, 1, Report::Begun { seq: 1 });
    report(&mut shell, 2, Report::Started { turn: 1 });
    shell.restart();
    assert_eq!(results_of_cat(&shell), []);
    assert_eq!(shell.teams.sessions_at("far"), [CAT]);
    report(&mut shell, 3, Report::Ended { turn: 1, completed: true, text: "done".to_owned() });
    assert_eq!(results_of_cat(&shell), [(true, "done")]);
}

#[test]
fn a_turn_that_ended_with_its_machines_daemon_has_failed() {
    let mut shell = with_cat();
    report(&mut shell, 1, Report::Begun { seq: 1 });
    report(&mut shell, 2, Report::Started { turn: 1 });
    report(&mut shell, 3, Report::Stopped);
    assert_eq!(results_of_cat(&shell), [(false, "the daemon stopped before this was finished")]);
}

#[test]
fn a_session_that_is_gone_elsewhere_leaves_its_team() {
    let mut shell = with_cat();
    report(&mut shell, 1, Report::Gone);
    assert_eq!(results_of_cat(&shell), [(false, "the session ended before it gave a result")]);
    assert!(shell.teams.sessions_at("far").is_empty() && shell.teams.nodes().is_empty());
    assert_eq!(shell.teams.reported(id(7), 1, Report::Gone, 0), [], "a session of no team");
}
