//! A word in a stream that arrives in pieces of any size.

#[derive(Debug)]
pub(super) struct Find {
    word: &'static [u8],
    /// The end of the bytes so far: too short to hold the word.
    rest: Vec<u8>,
}

impl Find {
    pub(super) fn new(word: &'static str) -> Self {
        Self { word: word.as_bytes(), rest: Vec::new() }
    }

    /// Takes the next piece; whether the word ends in it.
    pub(super) fn feed(&mut self, piece: &[u8]) -> bool {
        let most = self.word.len() - 1;
        let has = |bytes: &[u8]| memchr::memmem::find(bytes, self.word).is_some();
        let over_the_edge =
            !self.rest.is_empty() && has(&[&self.rest, &piece[..most.min(piece.len())]].concat());
        let found = over_the_edge || has(piece);
        self.rest.extend_from_slice(&piece[piece.len().saturating_sub(most)..]);
        let old = self.rest.len().saturating_sub(most);
        self.rest.drain(..old);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_once_however_the_stream_is_cut() {
        let stream = b"[[over [ove over] ..[over].. [over";
        for piece in 1..stream.len() {
            let mut find = Find::new("[over]");
            let times = stream.chunks(piece).filter(|piece| find.feed(piece)).count();
            assert_eq!(times, 1, "in pieces of {piece}");
        }
    }
}
