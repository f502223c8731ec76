//! A terminal's screen: however the bytes are cut, and whether it skims or not, the same is shown; a
//! snapshot repaints it, and the next bytes do the same to both. The first bytes of the input say how
//! large it is, how the bytes are cut, and where the snapshot is taken.
#![no_main]

use libfuzzer_sys::fuzz_target;
use session::terminal::screen::{Screen, Size};

fuzz_target!(|data: &[u8]| {
    let [cols, rows, cut, at, stream @ ..] = data else { return };
    let size = Size::new(u16::from(cols % 40), u16::from(rows % 12));
    let (past, future) = stream.split_at(usize::from(*at).min(stream.len()));

    let (mut whole, mut cut_up) = (Screen::new(size), Screen::new(size));
    cut_up.set_skimming(false);
    whole.feed(past);
    past.chunks(usize::from(*cut).max(1)).for_each(|piece| cut_up.feed(piece));
    assert_eq!(whole.snapshot(), cut_up.snapshot());

    let mut other = Screen::new(size);
    other.feed(whole.snapshot().as_bytes());
    other.feed(whole.unread());
    for screen in [&mut whole, &mut other] {
        screen.feed(future);
    }
    assert_eq!(whole.snapshot(), other.snapshot());
});
