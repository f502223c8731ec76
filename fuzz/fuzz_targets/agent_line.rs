//! The output of agent programs: no dialect panics, and a turn that started ends once. The first byte
//! of the input says which program it is and whether it was resumed; each line of the rest is one
//! of its output.
#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use session::agent::{Config, Exit, Input, KNOWN, Output, Settings, Turns, open};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, lines)) = data.split_first() else { return };
    let provider = KNOWN[usize::from(choice) % KNOWN.len()].name;
    let resumed = (choice >= 128).then(|| "id-0".to_owned());
    let dialect = open(provider, &[], Settings::default()).expect("these settings are good");
    let mut turns = Turns::new(Config::default(), dialect, resumed);
    let now = Instant::now();
    turns.handle(now, Input::Prompt { text: "go".to_owned() }).expect("it is idle");
    let mut ended = ended(&mut turns);
    for line in String::from_utf8_lossy(lines).lines() {
        turns.handle(now, Input::Line(line.into())).expect("a line is always taken");
        ended += self::ended(&mut turns);
    }
    // At most one more process is started, for a conversation that was refused.
    for _ in 0..2 {
        turns.handle(now, Input::Exited(Exit::Code(1))).expect("an exit is always taken");
        ended += self::ended(&mut turns);
    }
    assert_eq!(ended, 1);
    assert!(turns.pending().is_empty() && turns.running_turn().is_none());
});

/// Turns that ended.
fn ended(turns: &mut Turns) -> usize {
    let outputs = std::iter::from_fn(|| turns.poll_output());
    outputs.filter(|output| matches!(output, Output::TurnEnded(_))).count()
}
