//! Ids of tasks.

use std::sync::atomic::{AtomicU32, Ordering};

/// Assigns positive ids. Each differs from the two thousand million ids before it, on all
/// connections.
///
/// A stock node keeps its tasks over a reconnect, and sends results that failed on the old socket
/// on the new one. If ids restarted with each connection, or with the server, results of an old
/// task would end up in the answer of a new one.
pub(super) struct Numbers(AtomicU32);

impl Numbers {
    /// Starts at a random number.
    pub(super) fn from_random(start: u32) -> Self {
        Self(AtomicU32::new(start))
    }

    /// The next id, from 1 to 2³¹ − 1.
    pub(super) fn next(&self) -> i32 {
        loop {
            let bits = self.0.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff;
            match i32::try_from(bits) {
                Ok(id) if id > 0 => return id,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_positive_when_they_begin_again() {
        let near_the_top_bit = Numbers::from_random(0x7fff_fffe);
        let ids: Vec<i32> = (0..3).map(|_| near_the_top_bit.next()).collect();
        assert_eq!(ids, [i32::MAX - 1, i32::MAX, 1]);
        let near_the_end = Numbers::from_random(u32::MAX);
        assert_eq!([near_the_end.next(), near_the_end.next()], [i32::MAX, 1]);
    }
}
