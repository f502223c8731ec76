//! A simple scanner that reads an answer byte by byte. Tests compare the real one with it.

use super::{MAX_OBJECT, Usage, UsageScanner};

/// The scanner's state: looking for `"usage"` or `"usageMetadata"`, then for the colon, then for the object,
/// then in it.
#[derive(Default)]
enum Place {
    #[default]
    Elsewhere,
    Key,
    Colon,
    Object(Vec<u8>),
}

/// The usage in an answer. Each usage object is found here, and then read by a real scanner.
pub(super) fn usage(answer: &[u8]) -> Usage {
    let mut told = UsageScanner::new();
    let (mut place, mut at) = (Place::default(), 0);
    while let Some(&byte) = answer.get(at) {
        at += 1;
        place = match place {
            Place::Elsewhere => key(answer, &mut at),
            Place::Key if byte == b':' => Place::Colon,
            Place::Colon if byte == b'{' => Place::Object(vec![byte]),
            Place::Key if byte.is_ascii_whitespace() => Place::Key,
            Place::Colon if byte.is_ascii_whitespace() => Place::Colon,
            Place::Key | Place::Colon => key(answer, &mut at),
            Place::Object(mut object) => {
                object.push(byte);
                match depth(&object) {
                    0 => {
                        told.take(&object);
                        Place::Elsewhere
                    }
                    _ if object.len() >= MAX_OBJECT => Place::Elsewhere,
                    _ => Place::Object(object),
                }
            }
        };
    }
    told.usage()
}

/// After the byte before `at`: the key, if one begins with that byte.
fn key(answer: &[u8], at: &mut usize) -> Place {
    let start = *at - 1;
    let is_escaped = start > 0 && answer[start - 1] == b'\\';
    let keys = [&b"\"usage\""[..], b"\"usageMetadata\""];
    match keys.iter().find(|key| answer[start..].starts_with(key)).filter(|_| !is_escaped) {
        Some(key) => {
            *at = start + key.len();
            Place::Key
        }
        None => Place::Elsewhere,
    }
}

/// How many objects are open at the end of this beginning of one.
fn depth(object: &[u8]) -> i32 {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for &byte in object {
        match byte {
            _ if in_string && escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => depth -= 1,
            _ => {}
        }
    }
    depth
}
