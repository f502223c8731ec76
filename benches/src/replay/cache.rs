//! Which beginning of a prompt a model server has computed already, as llama.cpp's server has it: each slot keeps the
//! text of its last request, and what slots held before is kept in the machine's memory (`--cache-ram`).

use std::collections::VecDeque;

/// A free slot is taken for its text if that is at least this part of the prompt (`--slot-prompt-similarity`).
const SIMILAR: f64 = 0.1;

/// Where a slot would lose more than this part of its text, the text is put into the memory first.
const LOSES: f64 = 0.5;

/// Of a text in the memory, at least this part must be the prompt's.
const KEEPS: f64 = 0.25;

#[derive(Debug)]
pub(crate) struct Cache {
    slots: Vec<Slot>,
    memory: VecDeque<Vec<u8>>,
    /// How many bytes of text the memory holds.
    room: usize,
    uses: u64,
}

#[derive(Debug, Default)]
struct Slot {
    text: Vec<u8>,
    is_busy: bool,
    used: u64,
}

/// The slot for a prompt.
#[derive(Clone, Copy, Debug)]
struct Choice {
    slot: usize,
    /// How many bytes of the prompt need not be computed.
    known: usize,
    /// Whether the text of the slot is put into the memory.
    is_kept: bool,
    /// The place in the memory of the text that the slot gets.
    from_memory: Option<usize>,
}

impl Cache {
    /// With this number of slots, and a memory for this number of bytes of text.
    pub(crate) fn new(slots: usize, room: usize) -> Self {
        let slots = (0..slots).map(|_| Slot::default()).collect();
        Self { slots, memory: VecDeque::new(), room, uses: 0 }
    }

    /// How many bytes of a prompt would not be computed if it came now.
    pub(crate) fn known(&self, prompt: &[u8]) -> usize {
        self.choice(prompt).map_or(0, |choice| choice.known)
    }

    /// How many bytes of a prompt it has somewhere, whether or not a slot is free.
    pub(crate) fn holds(&self, prompt: &[u8]) -> usize {
        let slots = self.slots.iter().map(|slot| &slot.text);
        let all = slots.chain(&self.memory).map(|text| common(text, prompt));
        all.max().unwrap_or_default()
    }

    /// Gives a prompt a slot. Returns it, and how many bytes need not be computed; `None` while no slot is free.
    pub(crate) fn begin(&mut self, prompt: &[u8]) -> Option<(usize, usize)> {
        let choice = self.choice(prompt)?;
        let from_memory = choice.from_memory.and_then(|place| self.memory.remove(place));
        let slot = &mut self.slots[choice.slot];
        slot.is_busy = true;
        let before = std::mem::take(&mut slot.text);
        if choice.is_kept {
            self.keep(before);
        }
        drop(from_memory);
        Some((choice.slot, choice.known))
    }

    /// A slot has answered, and holds this text now.
    pub(crate) fn end(&mut self, slot: usize, text: Vec<u8>) {
        self.uses += 1;
        let used = self.uses;
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = Slot { text, is_busy: false, used };
        }
    }

    fn choice(&self, prompt: &[u8]) -> Option<Choice> {
        let free = || self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_busy);
        let most = free().max_by_key(|(_, slot)| common(&slot.text, prompt))?;
        let is_similar = share(common(&most.1.text, prompt), prompt.len()) > SIMILAR;
        let (number, slot) =
            if is_similar { most } else { free().min_by_key(|(_, slot)| slot.used)? };
        let known = common(&slot.text, prompt);
        let choice = Choice { slot: number, known, is_kept: false, from_memory: None };
        if is_similar && share(known, slot.text.len()) >= LOSES {
            return Some(choice);
        }
        Some(self.with_memory(Choice { is_kept: !slot.text.is_empty(), ..choice }, prompt))
    }

    /// A text in the memory is taken when more of it is the prompt's, and more of the prompt is in it.
    fn with_memory(&self, mut choice: Choice, prompt: &[u8]) -> Choice {
        let mut kept = share(choice.known, self.slots[choice.slot].text.len());
        for (place, text) in self.memory.iter().enumerate() {
            let known = common(text, prompt);
            let keeps = share(known, text.len());
            if keeps >= KEEPS && keeps > kept && known > choice.known {
                kept = keeps;
                choice = Choice { known, from_memory: Some(place), ..choice };
            }
        }
        choice
    }

    /// Keeps a text unless a longer one with it is there, instead of those that it goes on with. The oldest go.
    fn keep(&mut self, text: Vec<u8>) {
        if self.memory.iter().any(|kept| kept.starts_with(&text)) {
            return;
        }
        self.memory.retain(|kept| !text.starts_with(kept));
        self.memory.push_back(text);
        let size = |memory: &VecDeque<Vec<u8>>| memory.iter().map(Vec::len).sum::<usize>();
        while self.memory.len() > 1 && size(&self.memory) > self.room {
            self.memory.pop_front();
        }
    }
}

/// The length of the beginning that both have.
fn common(one: &[u8], other: &[u8]) -> usize {
    const STRIDE: usize = 256;
    let strides = one.chunks_exact(STRIDE).zip(other.chunks_exact(STRIDE));
    let whole = strides.take_while(|(a, b)| a == b).count() * STRIDE;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "you are an assistant with much to say about everything. ";

    fn text(end: &str) -> Vec<u8> {
        format!("{SYSTEM}{end}").into_bytes()
    }

    fn ask(cache: &mut Cache, prompt: &[u8]) -> usize {
        let (slot, known) = cache.begin(prompt).unwrap();
        cache.end(slot, prompt.to_vec());
        known
    }

    #[test]
    fn a_slot_knows_its_last_text() {
        let mut cache = Cache::new(2, 0);
        assert_eq!(ask(&mut cache, &text("one")), 0);
        assert_eq!(ask(&mut cache, &text("one and more")), SYSTEM.len() + 3);
        assert_eq!(cache.known(&text("other")), SYSTEM.len() + 1);
        assert_eq!(cache.known(b"nothing of it"), 0);
    }

    #[test]
    fn what_is_not_similar_takes_the_slot_that_was_idle_longest() {
        let mut cache = Cache::new(2, 0);
        ask(&mut cache, &[b'a'; 100]);
        ask(&mut cache, &[b'b'; 100]);
        ask(&mut cache, &[b'c'; 100]);
        ask(&mut cache, &[b'd'; 100]);
        assert_eq!([b'c', b'd'].map(|letter| cache.known(&[letter; 100])), [100, 100]);
        let memory = [b'a', b'b'].map(|letter| cache.known(&[letter; 100]));
        assert_eq!(memory, [0, 100], "the memory keeps the newest, even without room");
    }

    #[test]
    fn a_text_comes_back_from_the_memory_until_there_is_no_room() {
        let mut cache = Cache::new(1, 250);
        for letter in *b"abc" {
            ask(&mut cache, &[letter; 100]);
        }
        assert_eq!(cache.known(&[b'a'; 100]), 100);
        ask(&mut cache, &[b'd'; 100]);
        assert_eq!(cache.known(&[b'a'; 100]), 0);
        assert_eq!(ask(&mut cache, &[b'b'; 100]), 100);
    }

    #[test]
    fn no_slot_is_given_twice() {
        let mut cache = Cache::new(1, 0);
        let (slot, _) = cache.begin(b"one").unwrap();
        assert!(cache.begin(b"two").is_none());
        cache.end(slot, b"one".to_vec());
        assert!(cache.begin(b"two").is_some());
    }
}
