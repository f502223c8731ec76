//! An answer that is cut anywhere is the undisturbed one in the end.

use base::Endpoint;
use proptest::{collection::vec, prelude::*};
use serde_json::Value;

use super::{
    super::{Delivered, Rest, Seam, closing},
    streams::{Said, read},
};
use crate::answer::Answer;

const SHAPES: [Endpoint; 4] =
    [Endpoint::ChatCompletions, Endpoint::Completions, Endpoint::Messages, Endpoint::Responses];

/// An answer, how it goes on at others, and where it is cut.
#[derive(Debug, Clone)]
struct Story {
    endpoint: Endpoint,
    whole: Said,
    /// Whether providers repeat what they were sent where they tell everything.
    tells_all: bool,
    /// After how many bytes each provider but the last is lost.
    cuts: Vec<usize>,
    /// The size of the pieces in which bytes come.
    pieces: usize,
}

fn story() -> impl Strategy<Value = Story> {
    let word = "[ a-z\"\\\\é🎉\n]{1,4}";
    let shape = prop::sample::select(SHAPES.to_vec());
    let said = (vec(word, 0..6), vec(word, 1..12), any::<bool>(), any::<bool>());
    (shape, said, vec(0usize..6000, 1..4), 1usize..300).prop_map(
        |(endpoint, (thoughts, words, numbered, tells_all), cuts, pieces)| {
            let thoughts = if endpoint == Endpoint::Completions { Vec::new() } else { thoughts };
            let before = Default::default();
            let whole = Said { id: "first", before, thoughts, words, prompt: 100, numbered };
            Story { endpoint, whole, tells_all, cuts, pieces }
        },
    )
}

impl Story {
    /// The answer of a provider that goes on after this number of pieces.
    fn rest(&self, id: &'static str, pieces: usize) -> Said {
        let Said { thoughts, words, prompt, numbered, .. } = &self.whole;
        let thought = pieces.min(thoughts.len());
        let said = pieces - thought;
        let before = match self.tells_all {
            true => (thoughts[..thought].concat(), words[..said].concat()),
            false => Default::default(),
        };
        Said {
            id,
            before,
            thoughts: thoughts[thought..].to_vec(),
            words: words[said..].to_vec(),
            prompt: prompt + pieces,
            numbered: *numbered,
        }
    }

    /// All that the client gets, whether only the end of the answer was lost at last, and the provider that it is of.
    fn answer(&self) -> (Vec<u8>, bool, &'static str) {
        let (mut out, mut of) = (Vec::new(), "first");
        let mut delivered = Delivered::new(self.endpoint).unwrap();
        let stream = self.whole.events(self.endpoint).concat().into_bytes();
        for piece in stream[..self.cuts[0].min(stream.len())].chunks(self.pieces) {
            delivered.feed(piece, &mut out);
        }
        for (at, id) in ["second", "third", "fourth"].into_iter().enumerate() {
            if let Some(ended) = self.ends(&mut delivered, &mut out) {
                return (out, ended, of);
            }
            of = if out.is_empty() { id } else { of };
            let stream = self.rest(id, delivered.tokens() as usize).events(self.endpoint).concat();
            let len = self.cuts.get(at + 1).map_or(stream.len(), |cut| (*cut).min(stream.len()));
            let mut seam = Seam::new(delivered);
            for piece in stream.as_bytes()[..len].chunks(self.pieces) {
                seam.feed(piece, &mut out).unwrap();
            }
            delivered = seam.into_delivered();
        }
        let ended = self.ends(&mut delivered, &mut out);
        (out, ended.expect("the last provider is not lost"), of)
    }

    /// Whether the answer is at its end now, and if so, whether a part of the end was lost.
    fn ends(&self, delivered: &mut Delivered, out: &mut Vec<u8>) -> Option<bool> {
        match delivered.rest() {
            Rest::Text => None,
            Rest::Nothing => {
                let closing = closing(delivered);
                out.extend_from_slice(&closing);
                Some(!closing.is_empty())
            }
            Rest::No(reason) => panic!("{reason}"),
        }
    }

    /// All events as this provider alone would have sent them.
    fn undisturbed(&self, id: &'static str) -> Vec<Value> {
        let whole = Said { id, ..self.whole.clone() };
        read(whole.events(self.endpoint).concat().as_bytes())
    }
}

/// The events without usage, which is lost if nothing but the end was.
fn without_usage(events: Vec<Value>) -> Vec<Value> {
    let without = |mut event: Value| {
        let had = event.as_object_mut().and_then(|event| event.remove("usage")).is_some();
        let is_empty = event["choices"].as_array().is_some_and(Vec::is_empty);
        (!had || !is_empty).then_some(event)
    };
    events.into_iter().filter_map(without).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nobody_sees_the_seam(story in story()) {
        let (bytes, is_short, id) = story.answer();
        let whole = story.undisturbed(id);
        if is_short {
            prop_assert_eq!(without_usage(read(&bytes)), without_usage(whole));
        } else {
            prop_assert_eq!(read(&bytes), whole);
        }
    }

    #[test]
    fn what_passes_is_what_came_up_to_the_last_whole_event(story in story()) {
        let stream = story.whole.events(story.endpoint).concat().into_bytes();
        let cut = &stream[..story.cuts[0].min(stream.len())];
        let (mut fed, mut passed) = (Vec::new(), Vec::new());
        let mut delivered = Delivered::new(story.endpoint).unwrap();
        let mut same = Delivered::new(story.endpoint).unwrap();
        for piece in cut.chunks(story.pieces) {
            delivered.feed(piece, &mut fed);
            passed.extend_from_slice(&same.pass(piece.to_vec().into()));
        }
        prop_assert_eq!(&fed, &passed);
        prop_assert!(cut.starts_with(&fed));
        prop_assert!(fed.is_empty() || fed.ends_with(b"\n\n"));
        let half = &cut[fed.len()..];
        prop_assert!(!half.windows(2).any(|end| end == b"\n\n"));
        delivered.end(&mut fed);
        prop_assert_eq!(fed, cut);
    }
}

#[test]
fn every_byte_of_every_shape_may_be_the_last() {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    for endpoint in SHAPES {
        let thoughts =
            if endpoint == Endpoint::Completions { words(&[]) } else { words(&["hm", " so"]) };
        let whole = Said {
            id: "first",
            before: Default::default(),
            thoughts,
            words: words(&["You", " are", " \"é\"", "\n"]),
            prompt: 9,
            numbered: true,
        };
        for cut in 0..=whole.events(endpoint).concat().len() {
            let whole = whole.clone();
            let story = Story { endpoint, whole, tells_all: false, cuts: vec![cut], pieces: 64 };
            let (bytes, _, id) = story.answer();
            let expected = without_usage(story.undisturbed(id));
            assert_eq!(without_usage(read(&bytes)), expected, "{endpoint}, cut at {cut}");
        }
    }
}
