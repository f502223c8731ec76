//! How long a model server takes: slots share the machine, and prompts hold up the answers of others. Time is in
//! seconds, and passed in.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{BYTES_PER_TOKEN, SLOTS, cache::Cache, talk::answered};

/// Tokens a second of prompts, all together, and of one answer alone: a model of 8 billion parameters on one card.
const PROMPT_RATE: f64 = 2_500.0;
const ANSWER_RATE: f64 = 50.0;

/// How much longer each other answer makes one take, and the share of their rate that answers have beside prompts.
const SLOWER: f64 = 0.12;
const BESIDE_PROMPTS: f64 = 0.25;

/// The size of the memory for former slots (8 GiB, as is llama.cpp's default, at 128 KiB for a token), in bytes of text.
const MEMORY: usize = 65_536 * BYTES_PER_TOKEN;

/// A model server.
#[derive(Debug)]
pub(crate) struct Engine {
    cache: Cache,
    running: Vec<Running>,
    waiting: VecDeque<Ask>,
    at: f64,
    counts: Counts,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) prompt: Vec<u8>,
    /// Tokens of the answer.
    pub(crate) answer: u32,
}

#[derive(Debug)]
struct Running {
    ask: Ask,
    slot: usize,
    /// Tokens that are left of the prompt, and of the answer.
    prompt: f64,
    answer: f64,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first token of this request's answer is there.
    First(u64),
    /// And the last one.
    Done(u64),
}

/// The work of a model server so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Bytes of prompts, and those of them that need not be computed.
    pub(crate) prompt: u64,
    pub(crate) known: u64,
    /// Seconds that requests were there, all together.
    pub(crate) busy: f64,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            cache: Cache::new(SLOTS, MEMORY),
            running: Vec::new(),
            waiting: VecDeque::new(),
            at: 0.0,
            counts: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// How many bytes of a prompt would not be computed if it came now.
    pub(crate) fn known(&self, prompt: &[u8]) -> usize {
        self.cache.known(prompt)
    }

    /// How many bytes of a prompt it has somewhere, whether or not a slot is free.
    pub(crate) fn holds(&self, prompt: &[u8]) -> usize {
        self.cache.holds(prompt)
    }

    /// A request comes, at the time that [`Self::advance`] was last told.
    pub(crate) fn ask(&mut self, ask: Ask) {
        self.waiting.push_back(ask);
        self.begin();
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<f64> {
        let rates = self.rates();
        let left = self.running.iter().map(|running| running.left(rates));
        left.min_by(f64::total_cmp).map(|left| self.at + left)
    }

    /// Time passes. Returns what has happened, in order.
    pub(crate) fn advance(&mut self, to: f64) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(next) = self.next().filter(|next| *next <= to) {
            self.pass(next);
            self.happen(&mut events);
        }
        self.pass(to.max(self.at));
        events
    }

    fn begin(&mut self) {
        while let Some(ask) = self.waiting.pop_front() {
            let Some((slot, known)) = self.cache.begin(&ask.prompt) else {
                return self.waiting.push_front(ask);
            };
            self.counts.requests += 1;
            self.counts.prompt += ask.prompt.len() as u64;
            self.counts.known += known as u64;
            // At least one token is computed, as llama.cpp does it.
            let prompt = ((ask.prompt.len() - known) as f64 / BYTES_PER_TOKEN as f64).max(1.0);
            let answer = f64::from(ask.answer.max(1));
            self.running.push(Running { ask, slot, prompt, answer, has_begun: false });
        }
    }

    fn pass(&mut self, to: f64) {
        let (rates, passed) = (self.rates(), to - self.at);
        for running in &mut self.running {
            match running.has_begun {
                false => running.prompt -= passed * rates.0,
                true => running.answer -= passed * rates.1,
            }
        }
        self.counts.busy += passed * (self.running.len() + self.waiting.len()) as f64;
        self.at = to;
    }

    fn happen(&mut self, events: &mut Vec<Event>) {
        const NOTHING: f64 = 1e-6;
        for running in &mut self.running {
            if !running.has_begun && running.prompt <= NOTHING {
                running.has_begun = true;
                events.push(Event::First(running.ask.id));
            }
        }
        let is_done = |running: &mut Running| running.has_begun && running.answer <= NOTHING;
        let done: Vec<_> = self.running.extract_if(.., is_done).collect();
        for Running { ask, slot, .. } in done {
            events.push(Event::Done(ask.id));
            self.cache.end(slot, [ask.prompt, answered(ask.answer)].concat());
        }
        self.begin();
    }

    /// Tokens a second of each prompt, and of each answer.
    fn rates(&self) -> (f64, f64) {
        let answers = self.running.iter().filter(|running| running.has_begun).count();
        let prompts = self.running.len() - answers;
        let beside = if prompts > 0 { BESIDE_PROMPTS } else { 1.0 };
        let others = answers.saturating_sub(1) as f64;
        (PROMPT_RATE / prompts.max(1) as f64, ANSWER_RATE * beside / (1.0 + SLOWER * others))
    }
}

impl Running {
    /// Seconds to its next event at these rates.
    fn left(&self, (prompts, answers): (f64, f64)) -> f64 {
        let left = if self.has_begun { self.answer / answers } else { self.prompt / prompts };
        left.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(id: u64, prompt: &[u8]) -> Ask {
        Ask { id, prompt: prompt.to_vec(), answer: 50 }
    }

    #[test]
    fn a_prompt_is_computed_once() {
        let mut engine = Engine::new();
        engine.ask(ask(1, &[b'x'; 40_000]));
        assert_eq!(engine.next(), Some(4.0));
        assert_eq!(engine.advance(5.0), [Event::First(1), Event::Done(1)]);
        engine.ask(ask(2, &[b'x'; 40_000]));
        assert!(engine.next().unwrap() < 5.001);
        assert_eq!(engine.advance(9.0), [Event::First(2), Event::Done(2)]);
        let counts = engine.counts();
        assert_eq!((counts.requests, counts.prompt, counts.known), (2, 80_000, 40_000));
        assert!((counts.busy - 6.0).abs() < 0.01);
    }

    #[test]
    fn more_requests_than_slots_wait() {
        let mut engine = Engine::new();
        (0..=SLOTS as u64).for_each(|id| engine.ask(ask(id, format!("prompt {id}").as_bytes())));
        assert_eq!((engine.running.len(), engine.waiting.len()), (SLOTS, 1));
        let events = engine.advance(60.0);
        assert_eq!(events.len(), 2 * (SLOTS + 1));
        assert_eq!(events.last(), Some(&Event::Done(SLOTS as u64)));
    }

    #[test]
    fn a_prompt_holds_up_an_answer() {
        let mut alone = Engine::new();
        alone.ask(ask(1, b"short"));
        let ends = |engine: &mut Engine| {
            while engine.advance(engine.next().unwrap()) != [Event::Done(1)] {}
            engine.at
        };
        let quick = ends(&mut alone);
        let mut beside = Engine::new();
        beside.ask(ask(1, b"short"));
        beside.advance(0.1);
        beside.ask(ask(2, &[b'y'; 100_000]));
        assert!(ends(&mut beside) > 3.0 * quick);
    }
}
