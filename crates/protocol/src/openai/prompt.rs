//! Hashes of how a prompt begins, by which a conversation finds the provider that knows it.

/// The lengths in bytes of the beginnings that [`prompt_heads`] hashes.
pub const PROMPT_HEADS: [usize; 4] = [256, 1024, 4096, 16384];

/// Hashes of the first 256, 1024, 4096 and 16384 bytes: 0 where the prompt is shorter, never 0
/// otherwise. The same on every machine and in every version; not meant to withstand an attacker.
pub fn prompt_heads(prompt: &[u8]) -> [u64; 4] {
    let mut heads = [0; 4];
    let mut state = SEED;
    let mut hashed = 0;
    for (head, length) in heads.iter_mut().zip(PROMPT_HEADS) {
        let Some(next) = prompt.get(hashed..length) else { break };
        state = absorb(state, next);
        hashed = length;
        *head = finish(state).max(1);
    }
    heads
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// FNV's step on words of eight bytes; the shift brings high bits back down.
fn absorb(state: u64, bytes: &[u8]) -> u64 {
    // Every length is a multiple of eight: no rest is left.
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(state, |state, word| {
        let mixed = (state ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 32)
    })
}

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_there_from_its_length_on() {
        for (index, length) in PROMPT_HEADS.into_iter().enumerate() {
            let present = |bytes: usize| prompt_heads(&vec![7; bytes])[index] != 0;
            assert!(!present(length - 1) && present(length) && present(length + 1), "{length}");
        }
        assert_eq!(prompt_heads(b""), [0; 4]);
    }

    #[test]
    fn later_text_does_not_change_a_head() {
        let one = vec![b'a'; 2000];
        let mut other = one.clone();
        other[1024] = b'b';
        assert_eq!(prompt_heads(&one), prompt_heads(&other));
        other[1023] = b'b';
        let (one, other) = (prompt_heads(&one), prompt_heads(&other));
        assert_eq!(one[0], other[0]);
        assert_ne!(one[1], other[1]);
    }

    #[test]
    fn every_bit_of_a_head_counts() {
        let plain = prompt_heads(&[0; 256])[0];
        let mut seen = std::collections::HashSet::from([plain]);
        for bit in 0..256 * 8 {
            let mut prompt = [0u8; 256];
            prompt[bit / 8] = 1 << (bit % 8);
            assert!(seen.insert(prompt_heads(&prompt)[0]), "bit {bit}");
        }
    }

    #[test]
    fn hashes_stay_what_they_are() {
        let prompt: Vec<u8> = (0..16384u32).map(|n| n as u8).collect();
        let heads = prompt_heads(&prompt).map(|hash| format!("{hash:016x}"));
        let known =
            ["0fcf10faa3eeac96", "7bcd7edd55f691f0", "84a646cddf3bfd8b", "26e1b0cea8e7450e"];
        assert_eq!(heads, known);
    }
}
