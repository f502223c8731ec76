//! Frames and messages between the servers of a fleet: what is read is written the same, and a stream that
//! gets any frames hands on no more than its window, and goes on.
#![no_main]

use std::time::{Duration, Instant};

use bytes::Bytes;
use fleet::{
    Frame, Message, Stream, StreamId,
    stream::{Kind, Output, WINDOW},
};
use libfuzzer_sys::fuzz_target;

/// The most outputs for one frame: more would be a frame that multiplies.
const MOST_OUTPUTS: usize = 20_000;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::decode(data) {
        assert_eq!(message.encode()[..], *data, "what is read is written");
    }
    let now = Instant::now();
    let id = StreamId::from_random(1);
    let open = Frame { kind: Kind::Open, ..Frame::unknown(id) };
    let Some(mut stream) = Stream::accept(now, open) else { return };
    stream.write(now, Bytes::from_static(&[7; 5_000]), false);
    let mut got = 0;
    // Pieces, each with its length before it.
    let mut rest = Bytes::copy_from_slice(data);
    while rest.len() > 2 {
        let length = usize::from(rest[0]) << 8 | usize::from(rest[1]);
        let mut piece = rest.split_off(2);
        rest = piece.split_off(length.min(piece.len()));
        let Ok(frame) = Frame::decode(piece.clone()) else { continue };
        assert_eq!(frame.encode(), piece, "what is read is written");
        stream.handle(now, Frame { stream: id, ..frame });
        got += settle(&mut stream);
        assert!(got <= WINDOW, "{got} bytes, of which none were consumed");
    }
    stream.handle_timeout(now + Duration::from_millis(700));
    settle(&mut stream);
    stream.handle_timeout(now + Duration::from_secs(9));
    settle(&mut stream);
    assert!(stream.is_over());
});

/// Takes the outputs. Returns how many bytes are among them.
fn settle(stream: &mut Stream) -> u64 {
    let mut got = 0;
    for count in 0.. {
        assert!(count < MOST_OUTPUTS);
        match stream.poll_output() {
            None => break,
            Some(Output::Data(bytes)) => got += bytes.len() as u64,
            Some(_) => {}
        }
    }
    got
}
