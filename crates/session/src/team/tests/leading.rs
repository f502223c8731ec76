//! News that a leader's agent gets, and gets again.

use super::*;

impl Shell {
    fn works_for_leader(&mut self, worker: Uuid) {
        self.act(|teams, _| teams.works_for_leader(TEAM, worker).unwrap());
    }

    fn heard(&mut self, worker: Uuid, number: u64) {
        self.act(|teams, _| teams.heard(worker, number));
    }

    /// The team worker, number and text of each result that is news for the leader.
    fn news(&self) -> Vec<(Uuid, u64, String)> {
        let news = self.teams.news();
        assert!(news.keys().all(|leader| *leader == LEADER));
        let of_leader = news.into_values().flatten();
        of_leader.map(|one| (one.worker, one.number, one.result.to_string())).collect()
    }
}

#[test]
fn news_to_a_leader_are_repeated_unless_its_turn_was_over() {
    let mut shell = Shell::with_team(Limits::default());
    for text in ["one", "two", "three"] {
        shell.say(ANN, None, text).unwrap();
    }
    assert_eq!(shell.begin(LEADER, 1), 1);
    shell.complete(LEADER, 1, "done with it");
    assert_eq!(shell.begin(LEADER, 2), 2);
    shell.restart();
    assert_eq!(shell.begin(LEADER, 3), 2, "the turn with it did not end");
    // The daemon may die before it has stored that the turn began.
    shell.complete(LEADER, 3, "done with it");
    assert_eq!(shell.deliver(LEADER), 3);
    shell.restart();
    assert_eq!(shell.begin(LEADER, 4), 3);
    shell.complete(LEADER, 4, "done with it");
    shell.restart();
    assert!(shell.offers.is_empty(), "each of them was worked on");
    shell.check();
}

#[test]
fn a_message_stays_until_the_leaders_turn_with_it_is_over() {
    let mut shell = Shell::with_team(Limits { messages: 1, ..Limits::default() });
    shell.say(ANN, None, "one").unwrap();
    shell.begin(LEADER, 1);
    let full = Err(TeamError::InboxFull { team: TEAM, unread: 1 });
    assert_eq!(shell.say(ANN, None, "two"), full);
    shell.complete(LEADER, 1, "done with it");
    assert_eq!(shell.say(ANN, None, "two"), Ok(2));
    shell.check();
}

#[test]
fn results_of_workers_of_the_leaders_own_are_news_until_it_has_heard_of_them() {
    let mut shell = Shell::with_team(Limits::default());
    shell.works_for_leader(ANN);
    for worker in [ANN, BOB] {
        shell.assign(worker, "work");
        shell.begin(worker, 1);
        shell.complete(worker, 1, "done");
    }
    assert_eq!(shell.news(), [(ANN, 1, "done".to_owned())], "of Bob's somebody else hears");
    shell.restart();
    assert_eq!(shell.news().len(), 1, "nobody has told it");
    shell.complete(ANN, 2, "more");
    assert_eq!(shell.news(), [(ANN, 2, "more".to_owned())]);
    shell.heard(ANN, 1);
    assert_eq!(shell.news().len(), 1, "of the newer one it has not heard");
    shell.heard(ANN, 2);
    shell.heard(ANN, 1);
    assert_eq!(shell.news(), []);
    shell.restart();
    assert_eq!(shell.news(), []);
    shell.check();
}

#[test]
fn a_worker_that_dies_is_news_and_one_that_is_forgotten_is_not() {
    let mut shell = Shell::with_team(Limits { workers: 2, ..Limits::default() });
    shell.works_for_leader(ANN);
    shell.assign(ANN, "work");
    shell.begin(ANN, 1);
    shell.gone(ANN);
    assert_eq!(shell.news().len(), 1);
    shell.join(id(103)).unwrap();
    assert_eq!(shell.news(), []);
    let stranger = TeamError::NotMember { session: id(9), team: TEAM };
    assert_eq!(shell.teams.works_for_leader(TEAM, id(9)), Err(stranger));
    assert_eq!(shell.teams.heard(id(9), 1), []);
    shell.check();
}

#[test]
fn a_team_without_its_leader_has_no_news() {
    let mut shell = Shell::with_team(Limits::default());
    shell.works_for_leader(ANN);
    shell.complete(ANN, 1, "done");
    shell.gone(LEADER);
    assert_eq!(shell.news(), []);
    shell.act(|teams, _| teams.delete(TEAM).unwrap());
    assert!(shell.teams.unheard.is_empty());
}
