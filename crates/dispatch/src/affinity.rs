//! How a prompt begins: hashes by which a conversation finds the provider that knows it.

/// Heads end at multiples of this many bytes.
const GRAIN: usize = 256;

/// How finely heads are spaced. Two neighbouring heads are [`GRAIN`] bytes apart, or, if that is
/// more, at most this part of their distance from the end of the prompt.
const PART: usize = 8;

/// How many bytes of a prompt are looked at. By then the conversation is identified, so what
/// follows changes little.
const MOST: usize = 1 << 20;

/// The most heads of a prompt.
const MOST_HEADS: usize = 96;

/// Hashes of ever longer beginnings ("heads") of a prompt. Two prompts that share a hash share that
/// head, so a warm cache for it serves both.
///
/// Heads are close to each other near the end of the prompt, and ever farther apart towards its
/// beginning, so there are at most 96 of them, however long it is. A prompt that continues another
/// one finds it by a head that is shorter than the other by less than a third of what was added (or
/// 512 bytes).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Affinity {
    /// The longest first.
    heads: Vec<Head>,
}

/// The beginning of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its length in bytes.
    pub length: u32,
    /// Whether it should be remembered: no longer head ends at a rounder number, so prompts that
    /// continue this one most likely have a head of this length.
    pub is_round: bool,
    /// The hash is the same on every machine and in every version. It does not withstand an
    /// attacker.
    pub hash: u64,
}

impl Affinity {
    /// The heads of a prompt that models read after the parts of `before` (tools and instructions).
    /// All parts are given as they stand in the request. O(bytes).
    pub fn of(before: &[&[u8]], prompt: &[u8]) -> Self {
        // Models read tools and instructions first: a cache for them serves every prompt that follows.
        let start = before.iter().fold(SEED, |state, part| absorb(state, part));
        let offset = before.iter().map(|part| part.len()).sum::<usize>();
        // The prompt's last byte closes a list or a string. A longer prompt closes it later, so
        // that byte does not count.
        let open = prompt.get(..prompt.len().saturating_sub(1).min(MOST)).unwrap_or_default();
        let mut heads = Vec::with_capacity(MOST_HEADS.min(open.len() / GRAIN + 1));
        heads.extend(ends(open.len()).map(|end| Head::unhashed(end, offset, open.len())));
        hash(&mut heads, start, offset, open);
        // Conversations with one agent share its instructions, even if they have no turn in common.
        if offset >= GRAIN {
            heads.push(Head { length: length(offset), is_round: true, hash: finish(start) });
        }
        Self { heads }
    }

    /// All heads, the longest first.
    pub fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The heads that should be remembered, the longest first.
    pub fn round_heads(&self) -> impl Iterator<Item = &Head> {
        self.heads.iter().filter(|head| head.is_round)
    }
}

impl Head {
    fn unhashed(end: usize, offset: usize, whole: usize) -> Self {
        // No longer head ends at a multiple of the same power of two.
        let is_round = whole - end < 1 << end.trailing_zeros();
        Self { length: length(offset + end), is_round, hash: 0 }
    }
}

/// Where the heads of a prompt of this length end, the longest first. What follows a head is at least [`PART`] times
/// as long as the step to the next one.
fn ends(whole: usize) -> impl Iterator<Item = usize> {
    let rounded = move |most: usize| {
        let octave = ((whole - most) / (GRAIN * PART)).max(1).ilog2();
        let step = GRAIN << octave;
        Some(most / step * step).filter(|end| *end > 0)
    };
    std::iter::successors(rounded(whole), move |last| rounded(last - 1))
}

fn hash(heads: &mut [Head], mut state: u64, offset: usize, prompt: &[u8]) {
    let mut hashed = 0;
    for head in heads.iter_mut().rev() {
        let end = head.length as usize - offset;
        state = absorb(state, prompt.get(hashed..end).unwrap_or_default());
        head.hash = finish(state);
        hashed = end;
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// FNV's step on words of eight bytes, the last one filled up with zeros; the shift brings high bits back down.
fn absorb(state: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(state, |state, word| mix(state, u64::from_le_bytes(*word)));
    if rest.is_empty() {
        return state;
    }
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    mix(state, u64::from_le_bytes(last))
}

fn mix(state: u64, word: u64) -> u64 {
    let mixed = (state ^ word).wrapping_mul(FACTOR);
    mixed ^ (mixed >> 32)
}

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * at / 7) as u8).collect()
    }

    fn of(prompt: &[u8]) -> Affinity {
        Affinity::of(&[], prompt)
    }

    /// The longest head of `later` that is remembered of `earlier`.
    fn shared(earlier: &Affinity, later: &Affinity) -> usize {
        let known: HashSet<u64> = earlier.round_heads().map(|head| head.hash).collect();
        let found = later.heads().iter().find(|head| known.contains(&head.hash));
        found.map_or(0, |head| head.length as usize)
    }

    proptest! {
        #[test]
        fn a_prompt_that_goes_on_finds_the_one_before(
            before in 300usize..120_000,
            added in 2usize..60_000,
        ) {
            let whole = text(before + added);
            let found = shared(&of(&whole[..before]), &of(&whole));
            prop_assert!(found < before);
            let lost = before - found;
            prop_assert!(lost <= 512.max(added / 3) || found == 0 && before < 512.max(added / 3) + 256);
        }

        #[test]
        fn heads_are_few_and_ever_shorter(length in 0usize..3_000_000) {
            let heads = of(&vec![b'x'; length]);
            prop_assert!(heads.heads().len() <= MOST_HEADS);
            prop_assert!(heads.round_heads().count() <= 13);
            prop_assert!(heads.heads().is_sorted_by(|a, b| a.length > b.length));
            prop_assert!(heads.heads().iter().all(|head| head.length as usize <= MOST));
        }

        #[test]
        fn prompts_share_heads_exactly_as_far_as_they_are_equal(
            length in 1_000usize..40_000,
            at in 0usize..40_000,
        ) {
            let one = text(length);
            let mut other = one.clone();
            let at = at % length;
            other[at] ^= 1;
            for (a, b) in of(&one).heads().iter().zip(of(&other).heads()) {
                prop_assert_eq!(a.hash == b.hash, a.length as usize <= at);
            }
        }
    }

    #[test]
    fn the_bracket_that_closes_a_prompt_does_not_count() {
        let lengths = |tail: &[u8]| {
            let affinity = of(&[&text(511), tail].concat());
            affinity.heads().iter().map(|head| head.length).collect::<Vec<_>>()
        };
        assert_eq!(lengths(b"]"), [256]);
        assert_eq!(lengths(b",{}]"), [512, 256]);
    }

    #[test]
    fn what_models_read_before_the_prompt_is_a_head_and_a_part_of_all() {
        let prompt = text(2_000);
        let (tools, other) = (text(1_001), text(1_002));
        let with = Affinity::of(&[&tools, b"be brief"], &prompt);
        assert_eq!(with.heads().last().map(|head| head.length), Some(1_009));
        assert_eq!(with.heads().len(), of(&prompt).heads().len() + 1);
        let different = Affinity::of(&[&other, b"be brief"], &prompt);
        let hashes: HashSet<_> = with.heads().iter().map(|head| head.hash).collect();
        assert!(different.heads().iter().all(|head| !hashes.contains(&head.hash)));
        assert!(Affinity::of(&[&tools], b"").heads().iter().all(|head| head.is_round));
        assert_eq!(Affinity::of(&[b"short"], b"\"hi\""), Affinity::default());
    }

    #[test]
    fn every_bit_of_a_head_counts() {
        let mut seen = HashSet::from([of(&[0; 257]).heads()[0].hash]);
        for bit in 0..256 * 8 {
            let mut prompt = [0u8; 257];
            prompt[bit / 8] = 1 << (bit % 8);
            assert!(seen.insert(of(&prompt).heads()[0].hash), "bit {bit}");
        }
    }

    #[test]
    fn hashes_stay_what_they_are() {
        let prompt: Vec<u8> = (0..16_385u32).map(|n| n as u8).collect();
        let hash = |length| {
            let heads = of(&prompt);
            let head = heads.heads().iter().find(|head| head.length == length).copied();
            head.map(|head| format!("{:016x}", head.hash))
        };
        assert_eq!(hash(16_384).as_deref(), Some("26e1b0cea8e7450e"));
        assert_eq!(hash(4_096).as_deref(), Some("84a646cddf3bfd8b"));
    }
}
