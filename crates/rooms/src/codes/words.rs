//! The words of spoken codes: plain, friendly, easy to say and to spell, and all distinct.

use std::sync::LazyLock;

pub(super) static ADJECTIVES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("adjectives.txt").lines().collect());

pub(super) static ANIMALS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("animals.txt").lines().collect());

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn lists() -> [&'static Vec<&'static str>; 2] {
        [&ADJECTIVES, &ANIMALS]
    }

    #[test]
    fn each_list_has_at_least_256_words_and_none_is_in_them_twice() {
        for list in lists() {
            assert!(list.len() >= 256, "{}", list.len());
            assert!(list.is_sorted());
        }
        let all = lists().into_iter().flatten().collect::<HashSet<_>>();
        assert_eq!(all.len(), ADJECTIVES.len() + ANIMALS.len());
    }

    #[test]
    fn words_have_three_to_nine_plain_small_letters() {
        for word in lists().into_iter().flatten() {
            assert!((3..=9).contains(&word.len()), "{word}");
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
        }
    }

    #[test]
    fn no_two_words_of_a_list_differ_in_one_letter_only() {
        let differ = |a: &str, b: &str| {
            let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let tail = |text: &str, skip: usize| text.get(same + skip..).unwrap_or("").to_owned();
            tail(a, 1) != tail(b, 1) && tail(a, 1) != tail(b, 0) && tail(a, 0) != tail(b, 1)
        };
        for list in lists() {
            for (index, first) in list.iter().enumerate() {
                let alike = list[index + 1..].iter().find(|second| !differ(first, second));
                assert_eq!(alike, None, "beside {first}");
            }
        }
    }
}
