//! The words of the demo, and how much of them an answer that has begun holds already.

const OPENING: &str = "This is Warren's built-in demo. No model is running: these words are \
fixed, and they travel the same way as a real answer would, from a worker over its link to the \
server and from there to you, as they come.\n\n";

const TOPICS: [&str; 4] = [
    "Warren joins the machines that people own into one place to run language models. A worker \
runs beside a model server and dials out, so it needs no open port and works behind any router. \
The server keeps the queue: it knows which worker has which model and how many requests each one \
takes, and it hands out work the moment there is room.\n\n",
    "When you stop reading, Warren stops too. A request that is given up frees its place in the \
queue, and the model server's connection is closed at once, so that no machine computes an answer \
that nobody waits for. A worker that vanishes costs nothing that had not begun: another one takes \
its requests over.\n\n",
    "Whatever a model server sends passes through unchanged: status, headers and every byte of \
the body, in the pieces in which they came. Warren reads along for the counts, but it never \
rewrites an answer, so that fields it has never heard of reach you as well.\n\n",
    "One slow reader slows its own answer and nothing else. Each request on a link has a credit \
of bytes; when it is used up, that one stream waits at its model server, while all others on the \
same link go on.\n\n",
];

const CLOSING: &str = "To get a real answer, start a model server on this machine, for example \
Ollama, llama.cpp, vLLM or LM Studio: Warren finds it by itself. To lend the models of another \
machine, run there the line that `warren invite` prints.";

/// The words of the answer to a prompt, each with the space after it, without those that `begun` holds already. If
/// `begun` is not the beginning of this answer, it is ignored.
pub(super) fn rest(prompt: &str, begun: &str) -> Vec<&'static str> {
    let mut words = words(hash(prompt));
    if let Some(said) = said(&words, begun) {
        words.drain(..said);
    }
    words
}

/// Splits the text of a completion into its prompt and the beginning of its answer.
pub(super) fn split_prompt(text: &str) -> (&str, &str) {
    let first = OPENING.split_inclusive(' ').next().unwrap_or(OPENING);
    let cuts = text.rmatch_indices(first).map(|(at, _)| text.split_at(at));
    let is_own = |(prompt, begun): &(&str, &str)| said(&words(hash(prompt)), begun).is_some();
    cuts.take(MAX_CUTS).find(is_own).unwrap_or((text, ""))
}

/// How many places of a text are tried as the beginning of the answer, at most.
const MAX_CUTS: usize = 16;

/// How many of the words `begun` holds; `None` if it holds anything else.
fn said(words: &[&str], begun: &str) -> Option<usize> {
    let mut rest = begun;
    let said = words.iter().take_while(|word| {
        let after = rest.strip_prefix(**word);
        rest = after.unwrap_or(rest);
        after.is_some()
    });
    let said = said.count();
    rest.is_empty().then_some(said)
}

/// FNV-1a.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The answer to a prompt with this hash.
fn words(hash: u64) -> Vec<&'static str> {
    // The remainder is less than four.
    let topic = TOPICS[(hash % TOPICS.len() as u64) as usize];
    [OPENING, topic, CLOSING].into_iter().flat_map(split).collect()
}

/// Cuts after each run of spaces or line ends.
fn split(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let space = rest[word..].find(|c: char| !c.is_whitespace()).unwrap_or(rest.len() - word);
        let (first, others) = rest.split_at(word + space);
        rest = others;
        (!first.is_empty()).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_told_and_no_letter_is_lost() {
        for (hash, topic) in (0..).zip(TOPICS) {
            assert_eq!(words(hash).concat(), [OPENING, topic, CLOSING].concat());
        }
        assert_eq!(split("a  b\n\nc").collect::<Vec<_>>(), ["a  ", "b\n\n", "c"]);
    }
}
