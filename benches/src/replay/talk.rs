//! The conversations: chats with one of a few assistants, and agents, whose instructions are long and whose turns follow
//! each other closely. The same seed makes the same conversations.

use bytes::Bytes;

use super::BYTES_PER_TOKEN;
use crate::payload::MODEL;

/// Of each number of conversations, one less than half are agents'.
const AGENTS: f64 = 0.45;

/// The bytes of the instructions of each assistant and of each agent.
const ASSISTANTS: [usize; 6] = [0, 600, 1_500, 2_500, 4_000, 8_000];
const AGENTS_OF: [usize; 4] = [12_000, 24_000, 40_000, 64_000];

/// The prompts of everybody, one after the other.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) conversations: Vec<Conversation>,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    /// When it begins, in seconds.
    pub(crate) begins: f64,
    pub(crate) turns: Vec<Turn>,
    /// The messages of all of its turns, as a list that is not closed.
    text: Vec<u8>,
}

/// One request and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Seconds from the answer before to the request.
    pub(crate) pause: f64,
    /// Tokens of its answer.
    pub(crate) answer: u32,
    /// How much of the text is its prompt.
    prompt: usize,
}

impl Talk {
    /// This number of conversations, which begin within this number of seconds.
    pub(crate) fn new(seed: u64, conversations: usize, within: f64) -> Self {
        let mut random = Random(seed);
        let mut begin = || random.between(0.0, within);
        let begins: Vec<f64> = (0..conversations).map(|_| begin()).collect();
        let made = begins.into_iter().map(|begins| Conversation::new(begins, &mut random));
        Self { conversations: made.collect() }
    }

    pub(crate) fn requests(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.turns.len()).sum()
    }
}

impl Conversation {
    fn new(begins: f64, random: &mut Random) -> Self {
        let mut conversation = Self { begins, turns: Vec::new(), text: b"[".to_vec() };
        if random.share() < AGENTS {
            let agent = random.below(AGENTS_OF.len());
            conversation.instruct(100 + agent as u64, AGENTS_OF[agent]);
            (0..6 + random.below(19)).for_each(|turn| conversation.work(turn, random));
        } else {
            let assistant = random.below(ASSISTANTS.len());
            conversation.instruct(assistant as u64, ASSISTANTS[assistant]);
            (0..3 + random.below(10)).for_each(|turn| conversation.chat(turn, random));
        }
        conversation
    }

    fn instruct(&mut self, whose: u64, bytes: usize) {
        if bytes > 0 {
            let words = words(&mut Random(whose), bytes);
            self.say("system", &words);
        }
    }

    fn chat(&mut self, turn: usize, random: &mut Random) {
        let pause = if turn == 0 { 0.0 } else { random.between(8.0, 60.0) };
        let asked = words(random, 80 + random.clone().below(700));
        self.turn("user", &asked, pause, 60 + random.below(400));
    }

    /// The person comes back now and then; in between it is the results of tools that the agent goes on with.
    fn work(&mut self, turn: usize, random: &mut Random) {
        let is_asked = turn.is_multiple_of(7);
        let pause = match turn {
            0 => 0.0,
            _ if is_asked => random.between(20.0, 90.0),
            _ => random.between(0.5, 6.0),
        };
        let bytes = if is_asked { 100 + random.below(500) } else { 300 + random.below(6_000) };
        let said = words(random, bytes);
        self.turn(if is_asked { "user" } else { "tool" }, &said, pause, 30 + random.below(200));
    }

    fn turn(&mut self, role: &str, said: &str, pause: f64, answer: usize) {
        if let Some(last) = self.turns.last() {
            let answered = answered(last.answer);
            self.text.extend_from_slice(&answered);
        }
        self.say(role, said);
        let answer = u32::try_from(answer).unwrap_or(u32::MAX);
        self.turns.push(Turn { pause, answer, prompt: self.text.len() });
    }

    fn say(&mut self, role: &str, words: &str) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        let message = format!("{{\"role\":\"{role}\",\"content\":\"{words}\"}}");
        self.text.extend_from_slice(message.as_bytes());
    }

    /// The request of a turn. The messages come last, and nothing has to be added on the way.
    pub(crate) fn body(&self, turn: usize) -> Bytes {
        let most = self.turns.get(turn).map_or(0, |turn| turn.answer);
        let head = format!(
            "{{\"model\":\"{MODEL}\",\"stream\":true,\"stream_options\":{{\"include_usage\":true}},\
             \"max_tokens\":{most},\"messages\":"
        );
        [head.as_bytes(), self.prompt(turn), b"]}"].concat().into()
    }

    /// How many bytes a model server keeps of a turn when it has answered.
    #[cfg(test)]
    pub(crate) fn kept(&self, turn: usize) -> usize {
        self.prompt(turn).len() + answered(self.turns[turn].answer).len()
    }

    /// The messages of a turn, as a list that is not closed: what a model server keeps.
    pub(crate) fn prompt(&self, turn: usize) -> &[u8] {
        self.turns.get(turn).map_or(&[], |turn| &self.text[..turn.prompt])
    }
}

/// The text of an answer of this number of tokens, as a part of the conversation.
pub(crate) fn answered(tokens: u32) -> Vec<u8> {
    let words = "answer a ".repeat(tokens as usize * BYTES_PER_TOKEN / 9 + 1);
    format!(",{{\"role\":\"assistant\",\"content\":\"{words}\"}}").into_bytes()
}

fn words(random: &mut Random, bytes: usize) -> String {
    let mut words = String::with_capacity(bytes + 8);
    while words.len() < bytes {
        words += &format!("{:x} ", random.below(1 << 16));
    }
    words
}

/// SplitMix64.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.share()
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_goes_on_with_the_one_before_and_its_answer() {
        let talk = Talk::new(1, 20, 60.0);
        for conversation in &talk.conversations {
            for (number, turn) in conversation.turns.iter().enumerate().skip(1) {
                let before = conversation.turns[number - 1];
                let kept = [conversation.prompt(number - 1), &answered(before.answer)].concat();
                assert!(conversation.prompt(number).starts_with(&kept), "{turn:?}");
            }
        }
    }

    #[test]
    fn the_same_seed_says_the_same() {
        let [one, other] = [7, 7].map(|seed| Talk::new(seed, 5, 60.0));
        for (one, other) in one.conversations.iter().zip(&other.conversations) {
            assert_eq!((one.begins, &one.text), (other.begins, &other.text));
        }
        let different = Talk::new(8, 5, 60.0);
        assert_ne!(different.conversations[0].text, one.conversations[0].text);
    }

    #[test]
    fn every_prompt_is_json() {
        for conversation in &Talk::new(1, 20, 60.0).conversations {
            let last = conversation.prompt(conversation.turns.len() - 1);
            let whole = [last, b"]"].concat();
            assert!(serde_json::from_slice::<Vec<serde_json::Value>>(&whole).is_ok());
        }
    }
}
