//! Messages between members of a workspace cluster: what is read is written and read again the same,
//! and a member that gets it goes on within its bounds, and can read what it stored.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use replica::{
    Config, Dot, Incarnation, Input, LargestDots, LinkId, Message, NodeId, Output, Replica, Stored,
};

/// An outputs' bound for one message: more would be a message that multiplies.
const MOST_OUTPUTS: usize = 20_000;

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::decode(data) else { return };
    let written = message.encode();
    assert_eq!(Message::decode(&written), Ok(message.clone()), "what is written is read");
    let (now, wall) = (Instant::now(), Duration::from_secs(1_750_000_000));
    let config = Config::new(NodeId::from("a"));
    let mut replica = Replica::new(config, 1, Incarnation(1), Stored::default(), now, wall);
    let link = LinkId(1);
    let up = Input::LinkUp { link, node: NodeId::from("b"), incarnation: Incarnation(2) };
    // It begins a pull, which a batch may end.
    let hint = Message::Hint(LargestDots(vec![Dot::new(Incarnation(2), 1)]));
    let heard = [hint, message.clone(), message];
    let heard = heard.map(|message| Input::Message { link, message });
    for input in [up].into_iter().chain(heard) {
        let _ = replica.handle(now, wall, input);
        replica.handle_timeout(now, wall);
        settle(&mut replica, now, wall);
    }
    replica.handle_timeout(now + Duration::from_secs(100), wall);
    settle(&mut replica, now, wall);
});

fn settle(replica: &mut Replica, now: Instant, wall: Duration) {
    for count in 0.. {
        assert!(count < MOST_OUTPUTS);
        match replica.poll_output() {
            None => return,
            Some(Output::Keep { token, facts }) => {
                let rows = facts.iter().map(replica::Fact::to_bytes);
                let rows: Vec<_> = rows.filter_map(|(name, row)| Some((name, row?))).collect();
                let rows = rows.iter().map(|(name, row)| (&name[..], &row[..]));
                assert!(Stored::from_bytes(rows).is_ok(), "what is stored is read");
                let _ = replica.handle(now, wall, Input::Kept { token });
            }
            Some(_) => {}
        }
    }
}
