//! Questions of a program to its terminal, and who answers them.
//!
//! A program's question is part of its output. So every terminal that shows the output answers it; if no
//! terminal is attached, nobody does. This module makes sure that each question gets one answer:
//!
//! - The terminal of the client in control answers, since only that terminal knows its colours, its keys
//!   and its size in pixels. The answers of other terminals are not typed. A client that comes back is
//!   sent old questions again; second answers to these are not typed either.
//! - With no terminal attached, the session's own screen answers at once. It also answers for a terminal
//!   that is silent, but only what every terminal answers.
//!
//! A terminal answers in order. So an answer to a later question means that there will be none to an
//! earlier one: many programs ask what only some terminals know, and then what all terminals know.
//!
//! - [`Queries`]: the questions of one session; [`Query`]: one of them; [`Kind`]: its kind
//! - `find`: finds questions in output; `answer`: recognises answers in input

mod answer;
mod find;

use std::{
    collections::{BTreeMap, VecDeque},
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use bytes::Bytes;

use self::{answer::Reading, find::Finder};
use super::viewer::ViewerId;

/// How long the terminal of the client in control may take to answer. Programs wait for two seconds and
/// more.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How long after a question an answer of a terminal counts as one. A later one is taken for keys.
pub const OWED: Duration = Duration::from_secs(10);
/// The most questions that wait for an answer. Beyond that, the oldest are forgotten.
pub const MOST_OPEN: usize = 64;
/// The most questions that are remembered for clients that are sent them later, and the most that one
/// terminal has not answered. Beyond that, the oldest are forgotten.
pub const MOST_REMEMBERED: usize = 1024;
/// The longest remembered colour, in bytes.
const LONGEST_COLOUR: usize = 64;

/// The kind of a question, and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The terminal's attributes: the primary (` `), the secondary (`>`) or the tertiary (`=`).
    Attributes(char),
    /// Whether the terminal works.
    Status,
    /// The cursor's row and column.
    Position,
    /// The cursor's row and column, in the form of DEC.
    ExtendedPosition,
    /// Whether a mode is on.
    Mode,
    /// Whether a private mode is on.
    PrivateMode,
    /// A setting, as the sequence that sets it.
    Setting,
    /// Capabilities by their names in terminfo.
    Capability,
    /// The terminal's name and version.
    Version,
    /// A colour, by the number of the command that sets it.
    Colour(u16),
    /// A size, by the first number of its answer.
    Size(u16),
    /// How keys are reported.
    Keyboard,
    /// How other keys are reported, in xterm's way.
    OtherKeys,
    /// Whether the colours are dark or light.
    ColourScheme,
    /// The title of the window (`l`) or its icon (`L`).
    Title(char),
    /// Limits of graphics.
    Graphics,
    /// Whether pictures can be shown.
    Picture,
    /// The clipboard.
    Clipboard,
    /// A checksum of characters on the screen.
    Checksum,
}

impl Kind {
    /// Whether every terminal answers this, so that a program may rely on an answer.
    const fn is_answered_everywhere(self) -> bool {
        matches!(self, Self::Attributes(' ') | Self::Status | Self::Position)
    }
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub(super) kind: Kind,
    /// The sequence, without the end of a text.
    pub(super) sequence: String,
    /// Whether a bell ended the question. Then a bell ends the answer, too.
    pub(super) by_bell: bool,
}

/// Typed bytes, without the answers that are not for the program.
#[derive(Debug, PartialEq, Eq)]
pub struct FilteredInput {
    /// The keys for the program.
    pub keys: Bytes,
    /// Whether a person typed some of the keys. Answers come from terminals.
    pub has_keys: bool,
}

/// The questions of one session.
#[derive(Debug, Default)]
pub struct Queries {
    finder: Finder,
    last: u64,
    /// The newest questions, the oldest first.
    newest: VecDeque<NumberedQuery>,
    /// The questions that wait for a terminal's answer, the oldest first.
    open: VecDeque<Open>,
    /// For each client, the questions that its terminal was sent and has not answered.
    terminals: BTreeMap<ViewerId, Owed>,
    /// The last answers about the colours of text, background and cursor.
    colours: BTreeMap<u16, Bytes>,
}

#[derive(Debug, Clone, Copy)]
struct NumberedQuery {
    /// The number of the chunk that the question ends.
    seq: u64,
    id: u64,
    kind: Kind,
}

#[derive(Debug)]
struct Open {
    id: u64,
    kind: Kind,
    /// The client whose terminal is to answer.
    by: ViewerId,
    /// The answer of the session's own screen.
    own: Option<String>,
    until: Instant,
}

/// The questions that one terminal was sent.
#[derive(Debug, Default)]
struct Owed {
    queries: VecDeque<(u64, Kind, Instant)>,
    /// The beginning of an answer whose end has not come.
    begun: Vec<u8>,
    /// When that beginning is taken for keys: with Alt, `[` and `]` look like one.
    begun_until: Option<Instant>,
}

/// Questions.
impl Queries {
    /// Reads output. Returns the first question in it, and the number of bytes up to its end. The next
    /// call goes on after them. `None`: all was read.
    pub fn find(&mut self, output: &[u8]) -> Option<(usize, Query)> {
        self.finder.next(output)
    }

    /// Reads output whose questions nobody answers.
    pub fn pass(&mut self, output: &[u8]) {
        let mut rest = output;
        while let Some((end, _)) = self.finder.next(rest) {
            rest = &rest[end..];
        }
    }

    /// Notes a question that ends the chunk with this number. `by` is the client whose terminal is to
    /// answer, `own` the answer of the session's own screen. Returns what to type now.
    pub fn ask(
        &mut self,
        query: &Query,
        seq: u64,
        by: Option<ViewerId>,
        own: Option<String>,
        now: Instant,
    ) -> Option<Bytes> {
        self.last += 1;
        let (id, kind) = (self.last, query.kind);
        // Every terminal that is sent the chunk will answer, even if the screen answers now.
        push(&mut self.newest, NumberedQuery { seq, id, kind }, MOST_REMEMBERED);
        let own = own.or_else(|| self.colour(query));
        let Some(by) = by else { return own.map(Bytes::from) };
        let until = now + PATIENCE;
        push(&mut self.open, Open { id, kind, by, own, until }, MOST_OPEN);
        None
    }

    /// Notes that a client is sent the chunks with these numbers. Its terminal will answer the questions in
    /// them.
    pub fn sent(&mut self, client: ViewerId, seqs: RangeInclusive<u64>, now: Instant) {
        let first = self.newest.partition_point(|query| query.seq < *seqs.start());
        let sent = self.newest.range(first..).take_while(|query| query.seq <= *seqs.end());
        for NumberedQuery { id, kind, .. } in sent {
            let owed = self.terminals.entry(client).or_default();
            push(&mut owed.queries, (*id, *kind, now + OWED), MOST_REMEMBERED);
        }
    }

    /// Notes that a client has gone: its terminal answers nothing more.
    pub fn left(&mut self, client: ViewerId, now: Instant) {
        self.terminals.remove(&client);
        for open in self.open.iter_mut().filter(|open| open.by == client) {
            // Due at once, since this terminal will not answer.
            open.until = open.until.min(now);
        }
    }

    /// When to call [`Self::take_due`].
    pub fn due_at(&self) -> Option<Instant> {
        let begun = self.terminals.values().filter_map(|owed| owed.begun_until);
        self.open.iter().map(|open| open.until).chain(begun).min()
    }

    /// The answers to type for terminals that have been silent for too long, and keys that were held
    /// because they looked like the beginning of an answer. `is_alone`: no terminal is attached.
    pub fn take_due(&mut self, is_alone: bool, now: Instant) -> Vec<Bytes> {
        let (due, open): (VecDeque<_>, VecDeque<_>) =
            self.open.drain(..).partition(|open| open.until <= now);
        self.open = open;
        let own = due.into_iter().filter(|open| is_alone || open.kind.is_answered_everywhere());
        let own = own.filter_map(|open| open.own).map(Bytes::from);
        let held = self.terminals.values_mut().filter_map(|owed| owed.take_held(now));
        own.chain(held).collect()
    }

    /// The colour of text, background or cursor that a terminal reported last; otherwise white on black.
    fn colour(&self, query: &Query) -> Option<String> {
        let Kind::Colour(number @ 10..=12) = query.kind else { return None };
        let known = self.colours.get(&number).and_then(|known| std::str::from_utf8(known).ok());
        let default = if number == 11 { "rgb:0000/0000/0000" } else { "rgb:ffff/ffff/ffff" };
        let colour = known.unwrap_or(default);
        let end = if query.by_bell { "\x07" } else { "\x1b\\" };
        Some(format!("\x1b]{number};{colour}{end}"))
    }
}

/// Answers.
impl Queries {
    /// Takes the answers out of what a client types, except those that the program waits for. Nothing
    /// changes for a client whose terminal owes no answer.
    pub fn filter(&mut self, client: ViewerId, typed: Bytes, now: Instant) -> FilteredInput {
        let Some(begun) =
            self.begun(client, now).filter(|begun| !begun.is_empty() || typed.contains(&0x1b))
        else {
            return FilteredInput { keys: typed, has_keys: true };
        };
        let input = [&begun[..], &typed[..]].concat();
        let (mut keys, mut has_keys) = (Vec::with_capacity(input.len()), false);
        let mut rest = input.as_slice();
        while let Some((&first, after)) = rest.split_first() {
            let reading = if first == 0x1b { answer::read(rest) } else { Reading::Other };
            match reading {
                Reading::Answer(kind, length) => {
                    let (answer, after) = rest.split_at(length);
                    match self.match_answer(client, kind, answer) {
                        Fate::Typed => keys.extend_from_slice(answer),
                        Fate::Dropped => {}
                        Fate::Key => {
                            keys.extend_from_slice(answer);
                            has_keys = true;
                        }
                    }
                    rest = after;
                }
                Reading::Begun => {
                    let owed = self.terminals.entry(client).or_default();
                    (owed.begun, owed.begun_until) = (rest.to_vec(), Some(now + PATIENCE));
                    break;
                }
                Reading::Other => {
                    keys.push(first);
                    has_keys = true;
                    rest = after;
                }
            }
        }
        FilteredInput { keys: keys.into(), has_keys }
    }

    /// Drops the questions that a terminal has not answered within [`OWED`]. Takes and returns the beginning
    /// of its answer, which may be empty; `None` if the terminal owes no answer.
    fn begun(&mut self, client: ViewerId, now: Instant) -> Option<Vec<u8>> {
        let owed = self.terminals.get_mut(&client)?;
        owed.queries.retain(|(_, _, until)| *until > now);
        let begun = std::mem::take(&mut owed.begun);
        owed.begun_until = None;
        if owed.queries.is_empty() && begun.is_empty() {
            self.terminals.remove(&client);
            return None;
        }
        Some(begun)
    }

    fn match_answer(&mut self, client: ViewerId, kind: Kind, answer: &[u8]) -> Fate {
        let Some(owed) = self.terminals.get_mut(&client) else { return Fate::Key };
        let Some(at) = owed.queries.iter().position(|(_, owed, _)| *owed == kind) else {
            return Fate::Key;
        };
        // Terminals answer in order: the earlier questions get no answer any more.
        let id = owed.queries.drain(..=at).next_back().map(|(id, ..)| id);
        let awaits = |open: &Open| Some(open.id) == id && open.by == client;
        let is_awaited = self.open.iter().any(awaits);
        // For the same reason, earlier questions stop waiting for this terminal.
        self.open.retain(|open| open.by != client || Some(open.id) > id);
        if !is_awaited {
            return Fate::Dropped;
        }
        self.note_colour(kind, answer);
        Fate::Typed
    }

    fn note_colour(&mut self, kind: Kind, answer: &[u8]) {
        let Kind::Colour(number @ 10..=12) = kind else { return };
        let text = answer.splitn(2, |byte| *byte == b';').nth(1).unwrap_or_default();
        let end = text.iter().position(|byte| byte.is_ascii_control()).unwrap_or(text.len());
        // Bounded, since a client chooses this text, and it is typed into programs later.
        if end <= LONGEST_COLOUR {
            self.colours.insert(number, Bytes::copy_from_slice(&text[..end]));
        }
    }
}

impl Owed {
    /// The beginning of an answer, if its end has not come for too long.
    fn take_held(&mut self, now: Instant) -> Option<Bytes> {
        self.begun_until.take_if(|until| *until <= now)?;
        Some(Bytes::from(std::mem::take(&mut self.begun)))
    }
}

/// The fate of a sequence that looks like an answer.
enum Fate {
    /// The program waits for the answer.
    Typed,
    /// Another terminal answers, or has answered.
    Dropped,
    /// The terminal was not asked for this, so it is a key.
    Key,
}

fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests;
