//! A session's history on disk: the same however it is read, nothing that was not written, and what
//! is sound can be appended to. The first byte of the input says how it is split.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use session::terminal::log::{
    Chunk,
    record::{Reader, encode, header},
};

fuzz_target!(|data: &[u8]| {
    let Some((&piece, file)) = data.split_first() else { return };
    let (whole, reader) = read(file, file.len().max(1));
    let (pieces, other) = read(file, usize::from(piece).max(1));
    assert_eq!(pieces, whole);
    assert_eq!(other.sound_bytes(), reader.sound_bytes());
    assert_eq!(other.fault(), reader.fault());
    assert!(whole.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    let sound = &file[..usize::try_from(reader.sound_bytes()).unwrap()];
    if let Some(first) = reader.first_seq() {
        assert_eq!(written(first, &whole), sound);
        goes_on(first, whole);
    } else {
        assert!(whole.is_empty() && sound.is_empty());
    }
});

fn read(file: &[u8], piece: usize) -> (Vec<Chunk>, Reader) {
    let (mut reader, mut chunks) = (Reader::new(), Vec::new());
    for bytes in file.chunks(piece) {
        reader.push(bytes);
        chunks.extend(std::iter::from_fn(|| reader.next_chunk()));
    }
    (chunks, reader)
}

fn written(first: u64, chunks: &[Chunk]) -> BytesMut {
    let mut file = BytesMut::from(&header(first)[..]);
    chunks.iter().for_each(|chunk| encode(chunk, &mut file));
    file
}

/// One more record behind the sound ones is read, too.
fn goes_on(first: u64, mut chunks: Vec<Chunk>) {
    let seq = chunks.last().map_or(first, |chunk| chunk.seq + 1);
    if seq > session::terminal::log::MAX_SEQ {
        return;
    }
    chunks.push(Chunk { seq, text: "one more".into() });
    let file = written(first, &chunks);
    assert_eq!(read(&file, file.len()).0, chunks);
}
