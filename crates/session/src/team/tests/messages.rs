//! Messages between members.

use super::*;

fn seqs(page: &Page) -> Vec<u64> {
    page.messages.iter().map(|message| message.seq).collect()
}

#[test]
fn without_an_addressee_a_worker_speaks_to_the_leader_and_the_leader_to_all_workers() {
    let mut shell = Shell::with_team(Limits::default());
    assert_eq!(shell.say(ANN, None, "done"), Ok(1));
    assert_eq!(shell.say(LEADER, None, "good"), Ok(2));
    let shown: Vec<_> = shell.shown.iter().map(|one| (one.seq, one.from, one.to)).collect();
    assert_eq!(shown, [(1, ANN, LEADER), (2, LEADER, ANN), (2, LEADER, BOB)]);
    assert_eq!(shell.offers.keys().copied().collect::<Vec<_>>(), [LEADER, ANN, BOB]);
    assert_eq!(&*shell.offers[&BOB].payload, "good");
    shell.check();
}

#[test]
fn strangers_the_dead_and_oneself_are_no_addressees() {
    let mut shell = Shell::with_team(Limits::default());
    shell.create(id(2), id(200)).unwrap();
    let stranger = |session| Err(TeamError::NotMember { session, team: TEAM });
    assert_eq!(shell.say(id(200), Some(ANN), "hi"), stranger(id(200)));
    assert_eq!(shell.say(ANN, Some(id(200)), "hi"), stranger(id(200)));
    assert_eq!(shell.say(ANN, Some(id(9)), "hi"), stranger(id(9)));
    assert_eq!(shell.say(ANN, Some(ANN), "hi"), Err(TeamError::ToItself(ANN)));
    shell.gone(BOB);
    assert_eq!(shell.say(ANN, Some(BOB), "hi"), Err(TeamError::Gone(BOB)));
    assert_eq!(shell.say(BOB, None, "hi"), Err(TeamError::Gone(BOB)));
    shell.gone(ANN);
    assert_eq!(shell.say(LEADER, None, "hi"), Err(TeamError::NoWorkers(TEAM)));
    let unknown = shell.teams.relay(id(3), ANN, None, "hi", 0);
    assert_eq!(unknown, Err(TeamError::NoTeam(id(3))));
    let led = shell.teams.assign(TEAM, LEADER, "work", 0);
    assert_eq!(led, Err(TeamError::NotAWorker { session: LEADER, team: TEAM }));
    assert_eq!(shell.say(LEADER, Some(ANN), "hi"), Err(TeamError::Gone(ANN)));
    shell.check();
}

#[test]
fn messages_are_handed_over_one_after_the_other_in_order() {
    let mut shell = Shell::with_team(Limits::default());
    for text in ["one", "two", "three"] {
        shell.say(LEADER, Some(ANN), text).unwrap();
    }
    assert_eq!(shell.offers[&ANN].seq, 1);
    let early = TeamError::NotOffered { seq: 2, session: ANN };
    assert_eq!(shell.teams.delivered(TEAM, 2, ANN), Err(early));
    for expected in 1..=3 {
        assert_eq!(shell.deliver(ANN), expected);
        assert_eq!(shell.teams.delivered(TEAM, expected, ANN), Ok(vec![]));
    }
    assert!(shell.offers.is_empty());
    shell.check();
}

#[test]
fn a_message_without_room_is_offered_again_when_the_turn_ends() {
    let mut shell = Shell::with_team(Limits::default());
    shell.start(ANN, 1);
    shell.say(LEADER, Some(ANN), "one").unwrap();
    shell.offers.clear();
    shell.teams.not_taken(TEAM, 1, ANN);
    shell.say(LEADER, Some(ANN), "two").unwrap();
    assert!(shell.offers.is_empty());
    shell.complete(ANN, 1, "done");
    assert_eq!(shell.offers[&ANN].seq, 1);
    shell.offers.clear();
    shell.teams.not_taken(TEAM, 1, ANN);
    shell.act(|teams, _| teams.note_room(ANN));
    assert_eq!(shell.deliver(ANN), 1);
    assert_eq!(shell.deliver(ANN), 2);
    shell.check();
}

#[test]
fn a_leader_is_offered_its_messages_again_when_its_turn_ends() {
    let mut shell = Shell::with_team(Limits::default());
    shell.say(ANN, None, "one").unwrap();
    shell.offers.clear();
    shell.teams.not_taken(TEAM, 1, LEADER);
    shell.complete(LEADER, 1, "done");
    assert_eq!(shell.deliver(LEADER), 1);
    assert_eq!((shell.results.len(), shell.completed), (0, 0));
}

#[test]
fn undelivered_messages_are_delivered_after_a_restart() {
    let mut shell = Shell::with_team(Limits::default());
    for text in ["one", "two", "three"] {
        shell.say(LEADER, Some(ANN), text).unwrap();
    }
    shell.say(ANN, None, "four").unwrap();
    shell.begin(ANN, 1);
    shell.complete(ANN, 1, "done");
    shell.restart();
    assert_eq!(shell.offers[&ANN].seq, 2);
    assert_eq!(&*shell.offers[&LEADER].payload, "four");
    assert_eq!(shell.say(BOB, None, "five"), Ok(5));
    shell.check();
}

#[test]
fn an_inbox_is_read_again_from_any_place() {
    let mut shell = Shell::with_team(Limits::default());
    for (from, to) in [(LEADER, Some(ANN)), (LEADER, None), (BOB, None), (BOB, Some(ANN))] {
        shell.say(from, to, "text").unwrap();
    }
    let page = shell.read(ANN, None);
    assert_eq!((seqs(&page), page.next_seq, page.more), (vec![1, 2, 4], 5, false));
    assert_eq!(seqs(&shell.read(ANN, Some(2))), [2, 4]);
    assert_eq!(seqs(&shell.read(ANN, Some(3))), [4]);
    assert!(seqs(&shell.read(ANN, Some(5))).is_empty());
    assert_eq!(seqs(&shell.read(ANN, None)), [1, 2, 4]);
    assert_eq!(seqs(&shell.read(LEADER, None)), [3]);
    let stranger = TeamError::NotMember { session: id(9), team: TEAM };
    assert_eq!(shell.teams.inbox(TEAM, id(9), None), Err(stranger));
    shell.check();
    shell.restart();
    assert_eq!(seqs(&shell.read(ANN, Some(2))), [2, 4]);
}

#[test]
fn an_inbox_comes_in_pages_of_so_many_messages_and_bytes() {
    let limits = Limits { page_messages: 3, page_bytes: 100, ..Limits::default() };
    let mut shell = Shell::with_team(limits);
    let long = "x".repeat(200);
    for text in ["1", "2", "3", "4", &long, "6", &"y".repeat(99), "z"] {
        shell.say(LEADER, Some(ANN), text).unwrap();
        shell.say(LEADER, Some(BOB), "other").unwrap();
    }
    let (mut since, mut pages) = (None, Vec::new());
    loop {
        let page = shell.read(ANN, since);
        since = Some(page.next_seq);
        pages.push(seqs(&page));
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [vec![1, 3, 5], vec![7], vec![9], vec![11, 13], vec![15]]);
    assert_eq!(since, Some(17));
}

#[test]
fn a_long_message_is_refused() {
    let mut shell = Shell::with_team(Limits::default());
    let (what, len, max) = ("message", (1 << 20) + 1, 1 << 20);
    let expected = Err(TeamError::TooLong { what, len, max });
    assert_eq!(shell.say(ANN, None, &"x".repeat(len)), expected);
    assert_eq!(shell.say(ANN, None, &"x".repeat(max)), Ok(1));
}

#[test]
fn a_full_inbox_refuses_rather_than_lose_what_nobody_has_read() {
    let mut shell = Shell::with_team(Limits::default());
    for seq in 1..=10_000 {
        assert_eq!(shell.say(LEADER, None, "text"), Ok(seq));
    }
    let full = Err(TeamError::InboxFull { team: TEAM, unread: 10_000 });
    assert_eq!(shell.say(LEADER, None, "text"), full);
    // The first message has reached Ann, but not Bob.
    shell.deliver(ANN);
    assert_eq!(shell.say(LEADER, None, "text"), full);
    // Now Bob has read three messages, and none is being delivered to him. Only the first of them
    // has reached Ann, so only the first makes room.
    shell.offers.remove(&BOB);
    shell.teams.not_taken(TEAM, 1, BOB);
    shell.read(BOB, Some(4));
    assert_eq!(shell.say(ANN, Some(BOB), "text"), Ok(10_001));
    assert_eq!(shell.say(ANN, Some(BOB), "text"), full);
    // A message whose recipients have all read it or ended makes room, too.
    shell.gone(ANN);
    assert_eq!(shell.say(BOB, None, "text"), Ok(10_002));
    assert_eq!(shell.say(BOB, None, "text"), Ok(10_003));
    assert_eq!(shell.say(BOB, None, "text"), full);
    shell.check();
    let page = shell.read(BOB, None);
    assert_eq!((page.messages[0].seq, page.messages.len(), page.more), (4, 500, true));
    shell.restart();
    assert_eq!(shell.say(BOB, None, "text"), full);
}

#[test]
fn asking_from_a_place_that_is_not_there_yet_reads_nothing_of_what_comes() {
    let limits = Limits { messages: 2, ..Limits::default() };
    let mut shell = Shell::with_team(limits);
    let page = shell.read(ANN, Some(u64::MAX));
    assert_eq!((seqs(&page), page.next_seq), (vec![], 1));
    shell.say(LEADER, Some(ANN), "one").unwrap();
    shell.say(LEADER, Some(ANN), "two").unwrap();
    assert!(matches!(shell.say(LEADER, Some(ANN), "three"), Err(TeamError::InboxFull { .. })));
}

#[test]
fn bytes_of_a_team_and_of_all_teams_are_bounded() {
    let limits = Limits { inbox_bytes: 100, held_bytes: 150, ..Limits::default() };
    let mut shell = Shell::with_team(limits);
    shell.create(id(2), id(200)).unwrap();
    shell.act(|teams, _| teams.worker_joined(id(2), id(201), 0).unwrap());
    let sixty = "x".repeat(60);
    shell.say(LEADER, Some(ANN), &sixty).unwrap();
    let full = |unread| Err(TeamError::InboxFull { team: TEAM, unread });
    assert_eq!(shell.say(LEADER, Some(ANN), &sixty), full(1));
    shell.ask(|teams, _| teams.relay(id(2), id(200), None, "y".repeat(60), 0)).unwrap();
    assert_eq!(shell.say(LEADER, Some(ANN), &"x".repeat(31)), full(1));
    assert_eq!(shell.say(LEADER, Some(ANN), &"x".repeat(30)), Ok(2));
    shell.deliver(ANN);
    assert_eq!(shell.say(LEADER, Some(ANN), &sixty), Ok(3));
    shell.check();
    assert_eq!(shell.teams.held, 150);
}

#[test]
fn a_read_message_is_not_delivered_again() {
    let limits = Limits { messages: 2, ..Limits::default() };
    let mut shell = Shell::with_team(limits);
    shell.say(LEADER, Some(ANN), "one").unwrap();
    shell.say(LEADER, Some(ANN), "two").unwrap();
    shell.offers.clear();
    shell.teams.not_taken(TEAM, 1, ANN);
    shell.read(ANN, Some(2));
    shell.say(LEADER, Some(BOB), "three").unwrap();
    shell.act(|teams, _| teams.note_room(ANN));
    assert_eq!(shell.offers[&ANN].seq, 2);
    shell.check();
}
