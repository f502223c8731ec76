//! Messages between members of a workspace cluster: what is read is written and read again the same,
//! and a member that gets it goes on within its bounds.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use replica::{Config, Incarnation, Input, LinkId, Message, NodeId, Output, Replica, Stored};

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
    for input in
        [up, Input::Message { link, message: message.clone() }, Input::Message { link, message }]
    {
        let _ = replica.handle(now, wall, input);
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
            Some(Output::Keep { token, .. }) => {
                let _ = replica.handle(now, wall, Input::Kept { token });
            }
            Some(_) => {}
        }
    }
}
