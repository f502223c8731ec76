//! The servers and rooms that a request has passed, so that a request that comes back is not sent
//! on again.
//!
//! A request carries a mark for each of them in the header [`VIA`], in the order of its path. Every
//! hop that passes headers on passes the marks on: endpoints, workers (also stock ones) and
//! tunnels. Mesh links have a field for it. A mark reveals nothing to strangers: it is a keyed hash
//! of the scope, with a key that is new at each start of a server.

use std::{
    fmt::Write,
    hash::{BuildHasher, RandomState},
};

use base::Scope;

/// The header with the marks, separated by commas. Marks sent by a client count too: the client may be
/// a server.
pub const VIA: &str = "x-warren-via";

/// How many servers and rooms a request may pass.
pub const MAX_MARKS: usize = 8;

/// The number of hex digits in a mark.
const DIGITS: usize = 16;

/// The marks of one server and its rooms. Clones make the same marks.
#[derive(Debug, Clone)]
pub struct Marks(RandomState);

/// Why a request is not sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Loop {
    /// The request was here before.
    #[error(
        "the request has come back to where it was before: a backend behind this model is, in the \
         end, this server or room itself; let that backend serve a model of its own"
    )]
    Met,
    /// The request has passed more servers and rooms than [`MAX_MARKS`].
    #[error(
        "the request has passed {MAX_MARKS} servers and rooms: one of them is the backend of \
         another that it need not go by"
    )]
    TooLong,
}

impl Marks {
    /// Makes marks with these keys.
    pub fn new(keys: RandomState) -> Self {
        Self(keys)
    }

    /// The value of the header for a request that passes this scope; `before` is the value so far, from
    /// any number of headers. Anything that is not a mark is left out.
    ///
    /// # Errors
    /// [`Loop`] when it must go no further.
    pub fn pass<'a>(
        &self,
        scope: &Scope,
        before: impl IntoIterator<Item = &'a str>,
    ) -> Result<String, Loop> {
        let own = self.0.hash_one(scope);
        let (mut passed, mut count) = (String::with_capacity(DIGITS), 0);
        for mark in before.into_iter().flat_map(|list| list.split(',')).filter_map(parse) {
            count += 1;
            if mark == own {
                return Err(Loop::Met);
            }
            if count == MAX_MARKS {
                return Err(Loop::TooLong);
            }
            put(&mut passed, mark);
        }
        put(&mut passed, own);
        Ok(passed)
    }
}

fn parse(mark: &str) -> Option<u64> {
    let mark = mark.trim();
    let digits = mark.len() == DIGITS && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(mark, 16).ok()).flatten()
}

fn put(passed: &mut String, mark: u64) {
    let comma = if passed.is_empty() { "" } else { "," };
    // Writing to a string does not fail.
    let _ = write!(passed, "{comma}{mark:016x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(marks: &Marks, scope: &str, before: &str) -> Result<String, Loop> {
        marks.pass(&scope.into(), [before])
    }

    #[test]
    fn a_request_goes_through_each_scope_once() {
        let [one, other] = [(); 2].map(|()| Marks::new(RandomState::new()));
        let passed = pass(&one, "server", "").unwrap();
        let passed = pass(&one, "room", &passed).unwrap();
        let passed = pass(&other, "server", &passed).unwrap();
        assert_eq!(passed.len(), 3 * DIGITS + 2, "{passed}");
        for (marks, scope) in [(&one, "server"), (&one, "room"), (&other, "server")] {
            assert_eq!(pass(marks, scope, &passed), Err(Loop::Met));
        }
        let spaced = passed.replace(',', " , ");
        assert_eq!(pass(&one, "room", &spaced), Err(Loop::Met), "a list as proxies join it");
        let lines: Vec<_> = passed.split(',').collect();
        assert_eq!(one.pass(&"room".into(), lines), Err(Loop::Met), "several headers");
        assert!(pass(&one, "another room", &passed).is_ok());
    }

    #[test]
    fn a_way_ends_after_so_many_scopes_whatever_a_header_holds() {
        let marks = Marks::new(RandomState::new());
        let mut passed = String::new();
        for room in 0..MAX_MARKS {
            passed = pass(&marks, &format!("room{room}"), &passed).unwrap();
        }
        assert_eq!(pass(&marks, "one more", &passed), Err(Loop::TooLong));
        let no_marks =
            format!("x, ,{},0123, 0123456789abcdeg, {}", "a".repeat(60_000), "é".repeat(8));
        assert_eq!(pass(&marks, "room", &no_marks).unwrap().len(), DIGITS);
    }

    #[test]
    fn a_mark_is_another_after_each_start() {
        let mark = || pass(&Marks::new(RandomState::new()), "server", "").unwrap();
        assert_ne!(mark(), mark());
    }
}
