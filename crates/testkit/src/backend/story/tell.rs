//! The words.

use super::asked::{Asked, Shape};

/// Pieces of text, as a model's tokens are: some are no words, and some are not ASCII.
const PIECES: [&str; 32] = [
    " the",
    " a",
    " river",
    " wanderer",
    " of",
    " and",
    " quietly",
    " fox",
    " old",
    " lantern",
    " under",
    ",",
    ".",
    " it",
    " said",
    " \"yes\"",
    " zwölf",
    " naïve",
    " 🦊",
    " moon",
    " crossed",
    " bridge",
    " stone",
    "\n",
    " then",
    " nobody",
    " heard",
    " her",
    " song",
    " again",
    " before",
    " dawn",
];

/// An answer before it has a shape.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) thoughts: Vec<&'static str>,
    pub(super) text: Vec<&'static str>,
    /// The tool that is called in the end.
    pub(super) call: Option<String>,
    /// Whether it was cut.
    pub(super) cut: bool,
}

/// The arguments of a call, in the pieces in which they come.
pub(super) const ARGUMENTS: [&str; 3] = ["{\"place\":", "\"the river\"", "}"];

/// The answer, or the rest of it.
pub(super) fn story(asked: &Asked) -> Told {
    let mut context = hash(FIRST, &asked.context);
    let (mut told, mut thinks) = (Told::default(), asked.thinks);
    loop {
        if told.thoughts.len() + told.text.len() >= asked.most {
            told.cut = true;
            return told;
        }
        let mark = (context >> 40) % 48;
        if thinks && mark < 4 {
            thinks = false;
            context = hash(context, "</think>");
            continue;
        }
        // The end may be all that is missing of an answer that has begun; where a prompt ends and an answer begins,
        // completions do not tell.
        let has_begun =
            !told.text.is_empty() || !asked.begun.is_empty() || asked.shape == Shape::Completions;
        let calls = asked.tool.as_ref().filter(|_| !thinks && mark < 4 && has_begun);
        if let Some(tool) = calls {
            told.call = Some(tool.clone());
            return told;
        }
        if !thinks && mark == 47 && has_begun {
            return told;
        }
        let piece = PIECES[usize::try_from((context >> 20) % 32).unwrap_or_default()];
        context = hash(context, piece);
        if thinks { told.thoughts.push(piece) } else { told.text.push(piece) }
    }
}

const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of what was hashed before and this.
fn hash(before: u64, text: &str) -> u64 {
    text.bytes().fold(before, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
