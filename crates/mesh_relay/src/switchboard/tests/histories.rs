//! Any history keeps the promises.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Connect(bool),
    Register { line: usize, node: u8, signed: bool },
    Discover(usize),
    Say { line: usize, kind: usize, from: u8, to: u8, session: u8 },
    Garbage(usize, String),
    Gone(usize),
    GiveUp(usize, usize, u8),
    Pass(u64),
}

const KINDS: [&str; 7] =
    ["offer", "answer", "iceCandidate", "relayOpen", "relayReady", "relayData", "relayClose"];

fn step() -> impl Strategy<Value = Step> {
    let (line, node) = (0..8usize, 0..6u8);
    prop_oneof![
        2 => any::<bool>().prop_map(Step::Connect),
        4 => (line.clone(), node.clone(), prop::bool::weighted(0.9))
            .prop_map(|(line, node, signed)| Step::Register { line, node, signed }),
        1 => line.clone().prop_map(Step::Discover),
        10 => (line.clone(), 0..7usize, node.clone(), node, 0..3u8)
            .prop_map(|(line, kind, from, to, session)| Step::Say { line, kind, from, to, session }),
        1 => (line.clone(), "[{}\":a-z0-9]{0,20}").prop_map(|(line, text)| Step::Garbage(line, text)),
        1 => line.clone().prop_map(Step::Gone),
        1 => (line.clone(), line, 0..3u8).prop_map(|(a, b, session)| Step::GiveUp(a, b, session)),
        1 => (0..400u64).prop_map(Step::Pass),
    ]
}

fn take(hall: &mut Hall, lines: &mut Vec<Connection>, step: Step) {
    let at = |line: usize| lines.get(line % lines.len().max(1)).copied();
    match step {
        Step::Connect(false) => lines.extend(hall.board.connected(hall.now, None)),
        Step::Connect(true) => {
            let challenge = Challenge { nonce: "n".into(), host: "h".into() };
            lines.extend(hall.board.connected(hall.now, Some(challenge)));
        }
        Step::Register { line, node, signed } => {
            let Some(line) = at(line) else { return };
            let challenge = hall.board.lines.get(&line).and_then(|line| line.challenge.as_ref());
            let text = if challenge.is_some() { "warren-register:n:h:" } else { "" };
            let signature = if signed { format!("{text}{}", id(node)) } else { String::new() };
            hall.register(line, &id(node), &signature);
        }
        Step::Discover(line) => {
            let Some(line) = at(line) else { return };
            hall.say(line, json!({"discover": {}}));
        }
        Step::Say { line, kind, from, to, session } => {
            let Some(line) = at(line) else { return };
            hall.pass_on(line, KINDS[kind], from, to, &session.to_string());
        }
        Step::Garbage(line, text) => {
            let Some(line) = at(line) else { return };
            hall.text(line, &text);
        }
        Step::Gone(line) => {
            let Some(line) = at(line) else { return };
            hall.board.gone(hall.now, line);
        }
        Step::GiveUp(a, b, session) => {
            let (Some(a), Some(b)) = (at(a), at(b)) else { return };
            hall.board.give_up(a, b, &session.to_string());
        }
        Step::Pass(seconds) => {
            hall.pass(seconds);
            hall.board.sweep(hall.now);
        }
    }
    hall.drain();
}

/// Checks the rules that hold after each step. `before`: who was which node before it.
fn check(hall: &Hall, before: &HashMap<Connection, RelayNodeId>, sent: &[(Connection, Value)]) {
    let after = nodes(hall);
    for (to, message) in sent {
        let (kind, body) = message.as_object().unwrap().iter().next().unwrap();
        if !KINDS.contains(&kind.as_str()) {
            continue;
        }
        let is = |node: &RelayNodeId| body["toNodeID"] == node.as_str();
        assert!(after.get(to).is_some_and(is), "{message} went to who is somebody else");
        let sender = |node: &RelayNodeId| body["fromNodeID"] == node.as_str();
        assert!(before.values().any(sender), "{message} came from nobody");
    }
    let watchers = hall.board.watchers.len();
    assert!(sent.len() <= 2 * (watchers + after.len() + 4), "{} of one step", sent.len());
    let lines = &hall.board.lines;
    assert!(hall.board.nodes.iter().all(|(id, line)| after[line] == *id));
    assert_eq!(hall.board.nodes.len(), after.len());
    assert!(hall.board.watchers.iter().all(|line| lines.contains_key(line)));
    let of_pair = hall.board.settings.max_sessions_of_pair;
    hall.board.sessions.check(of_pair, |line| after.contains_key(&line));
}

fn nodes(hall: &Hall) -> HashMap<Connection, RelayNodeId> {
    let lines = hall.board.lines.iter();
    lines.filter_map(|(line, at)| Some((*line, at.node.as_ref()?.id.clone()))).collect()
}

proptest! {
    #[test]
    fn any_history_keeps_the_promises(
        steps in prop::collection::vec(step(), 0..120), unsigned: bool, max_sessions in 1..4usize,
        max_sessions_of_pair in 1..3usize,
    ) {
        let settings = Settings {
            accept_unsigned: unsigned, max_sessions, max_sessions_of_pair, max_nodes: 4,
            max_strangers: 6, ..Settings::default()
        };
        let mut hall = Hall::with(settings);
        let mut lines = Vec::new();
        for step in steps {
            let before = nodes(&hall);
            take(&mut hall, &mut lines, step);
            let sent = std::mem::take(&mut hall.sent);
            check(&hall, &before, &sent);
        }
        for line in lines {
            hall.board.gone(hall.now, line);
        }
        let counts = hall.board.counts();
        prop_assert_eq!((counts.connections, counts.registered, counts.sessions), (0, 0, 0));
    }
}
