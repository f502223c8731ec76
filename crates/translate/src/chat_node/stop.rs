//! Finds the stop sequence at which a text ends.

/// Passes text on up to the stop sequence that is complete first, however the text is cut into
/// pieces. What may be the beginning of a sequence is held back until it is certain whether its
/// rest comes.
#[derive(Debug, Clone, Default)]
pub(super) struct StopScan {
    stops: Vec<String>,
    /// A possible beginning of a stop sequence, so shorter than the longest one.
    held: String,
}

impl StopScan {
    /// Stops at any of these sequences, none of which is empty.
    pub(super) fn new(stops: Vec<String>) -> Self {
        Self { stops, held: String::new() }
    }

    /// Reads the next piece, and appends the text that is certain to `out`. Returns whether the
    /// text ends here; then `feed` must not be called again.
    pub(super) fn feed(&mut self, piece: &str, out: &mut String) -> bool {
        if self.stops.is_empty() {
            out.push_str(piece);
            return false;
        }
        self.held.push_str(piece);
        let first = first(&self.stops, &self.held);
        let certain = first.unwrap_or_else(|| self.held.len() - self.beginning());
        out.extend(self.held.drain(..certain));
        if first.is_some() {
            self.held.clear();
        }
        first.is_some()
    }

    /// Ends the text: the held part is ordinary text.
    pub(super) fn end(&mut self, out: &mut String) {
        out.push_str(&std::mem::take(&mut self.held));
    }

    /// How many bytes at the end are the beginning of a sequence.
    fn beginning(&self) -> usize {
        let of = |stop: &String| {
            let cuts = (1..stop.len()).rev().filter(|&cut| stop.is_char_boundary(cut));
            cuts.into_iter().find(|&cut| self.held.ends_with(&stop[..cut])).unwrap_or(0)
        };
        self.stops.iter().map(of).max().unwrap_or(0)
    }
}

/// The start of the sequence that is complete first; of several that end at the same place, the
/// longest.
fn first(stops: &[String], text: &str) -> Option<usize> {
    let found = stops.iter().filter_map(|stop| {
        let start = text.find(&**stop)?;
        Some((start + stop.len(), start))
    });
    found.min().map(|(_, start)| start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that passes, and whether it was stopped.
    fn scan(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut scan = StopScan::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut out = String::new();
        for piece in pieces {
            if scan.feed(piece, &mut out) {
                return (out, true);
            }
        }
        scan.end(&mut out);
        (out, false)
    }

    #[test]
    fn text_passes_up_to_the_first_stop() {
        assert_eq!(scan(&["END"], &["a E", "N", "Db"]), ("a ".to_owned(), true));
        assert_eq!(scan(&["END"], &["a E", "N", "Eb"]), ("a ENEb".to_owned(), false));
        assert_eq!(scan(&["END"], &["a EN"]), ("a EN".to_owned(), false));
        assert_eq!(scan(&["cd", "b"], &["abcd"]), ("a".to_owned(), true));
        assert_eq!(scan(&["aab"], &["aa", "ab"]), ("a".to_owned(), true));
        for pieces in [&["abcd"][..], &["abc", "d"]] {
            assert_eq!(scan(&["abcd", "bc"], pieces), ("a".to_owned(), true), "complete first");
        }
        assert_eq!(scan(&[], &["a"]), ("a".to_owned(), false));
    }

    #[test]
    fn only_a_possible_beginning_is_held_back() {
        let mut scan = StopScan::new(vec!["\nUser:".to_owned()]);
        let mut out = String::new();
        scan.feed("well\nUs", &mut out);
        assert_eq!(out, "well");
        scan.feed("eful", &mut out);
        assert_eq!(out, "well\nUseful");
    }

    proptest! {
        #[test]
        fn any_cut_stops_at_the_same_place(
            text in "[abé]{0,30}",
            stops in proptest::collection::vec("[abé]{1,4}", 0..3),
            size in 1..5usize,
        ) {
            let first = (0..=text.len()).filter(|&end| text.is_char_boundary(end)).find_map(|end| {
                let starts = stops.iter().filter(|stop| text[..end].ends_with(&***stop));
                starts.map(|stop| end - stop.len()).min()
            });
            let expected = (text[..first.unwrap_or(text.len())].to_owned(), first.is_some());
            let characters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = characters.chunks(size).map(|c| c.iter().collect()).collect();
            let pieces: Vec<&str> = pieces.iter().map(|piece| &**piece).collect();
            let stops: Vec<&str> = stops.iter().map(|stop| &**stop).collect();
            prop_assert_eq!(scan(&stops, &pieces), expected);
        }
    }
}
