//! The words of an answer.

use super::request::{Request, Shape};

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
pub(super) struct Answer {
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
pub(super) fn story(request: &Request) -> Answer {
    let mut context = hash(FIRST, &request.context);
    let (mut answer, mut thinks) = (Answer::default(), request.thinks);
    loop {
        if answer.thoughts.len() + answer.text.len() >= request.most {
            answer.cut = true;
            return answer;
        }
        let mark = (context >> 40) % 48;
        if thinks && mark < 4 {
            thinks = false;
            context = hash(context, "</think>");
            continue;
        }
        // An answer that has begun may lack nothing but its end. A request for completions does not say where its prompt
        // ends and the answer begins.
        let has_begun = !answer.text.is_empty()
            || !request.begun.is_empty()
            || request.shape == Shape::Completions;
        let calls = request.tool.as_ref().filter(|_| !thinks && mark < 4 && has_begun);
        if let Some(tool) = calls {
            answer.call = Some(tool.clone());
            return answer;
        }
        if !thinks && mark == 47 && has_begun {
            return answer;
        }
        let piece = PIECES[usize::try_from((context >> 20) % 32).unwrap_or_default()];
        context = hash(context, piece);
        if thinks { answer.thoughts.push(piece) } else { answer.text.push(piece) }
    }
}

const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, continued from the hash of the text before.
fn hash(before: u64, text: &str) -> u64 {
    text.bytes().fold(before, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
