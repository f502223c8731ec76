//! One answer for each question, within bounds.

use super::*;

const A: ViewerId = ViewerId(1);
const B: ViewerId = ViewerId(2);

/// All queries in an output that comes in these pieces.
fn found(pieces: &[&str]) -> Vec<Kind> {
    let (mut queries, mut kinds) = (Queries::default(), Vec::new());
    for piece in pieces {
        let mut rest = piece.as_bytes();
        while let Some((end, query)) = queries.find(rest) {
            kinds.push(query.kind);
            rest = &rest[end..];
        }
    }
    kinds
}

/// Asks in the chunk `seq`, by `by`, with an answer of the session's own.
fn ask(
    queries: &mut Queries,
    text: &str,
    seq: u64,
    by: Option<ViewerId>,
    now: Instant,
) -> Option<Bytes> {
    let (end, query) = queries.find(text.as_bytes()).unwrap();
    assert_eq!(end, text.len());
    queries.ask(&query, seq, by, Some(format!("own {seq}")), now)
}

fn typed(queries: &mut Queries, client: ViewerId, text: &str, now: Instant) -> (String, bool) {
    let FilteredInput { keys, has_keys } =
        queries.filter(client, Bytes::copy_from_slice(text.as_bytes()), now);
    (String::from_utf8(keys.to_vec()).unwrap(), has_keys)
}

#[test]
fn questions_are_found_wherever_the_output_is_cut() {
    let output = "a\x1b[31mb\x1b[c\x1b[>c\x1b[=0c\x1bZ\x1b[5n\x1b[6n\x1b[?6n\x1b[4$p\x1b[?2026$p\x1bP$qm\x1b\\\
                  \x1bP+q544e\x1b\\\x1b[>q\x1b]11;?\x07\x1b]4;1;?\x1b\\\x1b[14t\x1b[18t\x1b[?u\x1b[?4m\x1b[?996nz";
    use Kind::*;
    let kinds = [
        Attributes(' '),
        Attributes('>'),
        Attributes('='),
        Attributes(' '),
        Status,
        Position,
        ExtendedPosition,
        Mode,
        PrivateMode,
        Setting,
        Capability,
        Version,
        Colour(11),
        Colour(4),
        Size(4),
        Size(8),
        Keyboard,
        OtherKeys,
        ColourScheme,
    ];
    assert_eq!(found(&[output]), kinds);
    for cut in 1..output.len() {
        assert_eq!(found(&[&output[..cut], &output[cut..]]), kinds, "{cut}");
    }
}

#[test]
fn what_asks_nothing_is_no_question() {
    let output = "\x1b[m\x1b[4m\x1b[0 q\x1b[>1u\x1b[<u\x1b[u\x1b[22;2t\x1b[!p\x1b]11;#123456\x07\x1b]2;?\x07\x1b]52;c;aGk=\x07\
                  \x1b[1;1H[6n\x1b[6\x18n\x1b]11;?\x18\x1bP$q\x18m\x1b(c\x1b[2S\x1b[?1049h";
    assert!(found(&[output]).is_empty());
    // A question within a text does not count, and a text without an end is not kept.
    let mut queries = Queries::default();
    for _ in 0..1000 {
        assert_eq!(
            queries.find("\x1bPq#0;2;0~".repeat(100).trim_start_matches('\x1b').as_bytes()),
            None
        );
    }
    let endless = format!("\x1b]11;{}", "9".repeat(100_000));
    assert_eq!(found(&[&endless, ";?\x07\x1b[6n"]), [Kind::Position]);
}

#[test]
fn with_no_terminal_the_screen_answers_at_once() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    assert_eq!(ask(&mut queries, "\x1b[6n", 1, None, now).unwrap(), "own 1");
    assert_eq!(queries.due_at(), None);
}

#[test]
fn of_several_terminals_the_one_in_control_answers() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    assert_eq!(ask(&mut queries, "\x1b[6n", 1, Some(A), now), None);
    for client in [A, B] {
        queries.sent(client, 1..=1, now);
    }
    assert_eq!(typed(&mut queries, B, "\x1b[1;1R", now), (String::new(), false));
    assert_eq!(typed(&mut queries, A, "\x1b[2;2R", now), ("\x1b[2;2R".to_owned(), false));
    // Afterwards it is a key: F3 with Shift.
    assert_eq!(typed(&mut queries, A, "\x1b[1;2R", now), ("\x1b[1;2R".to_owned(), true));
    assert_eq!(queries.due_at(), None);
}

#[test]
fn an_answer_is_known_among_keys_and_in_pieces() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    for seq in 1..=2 {
        ask(&mut queries, "\x1b]11;?\x07", seq, Some(A), now);
        queries.sent(B, seq..=seq, now);
    }
    assert_eq!(
        typed(&mut queries, B, "a\x1b[A\x1b]11;rgb:0/0/0\x1b\\b", now),
        ("a\x1b[Ab".to_owned(), true)
    );
    assert_eq!(typed(&mut queries, B, "c\x1b]11;rgb:", now), ("c".to_owned(), true));
    assert_eq!(typed(&mut queries, B, "0/0/0\x07d\x1b", now), ("d\x1b".to_owned(), true));
    // Escape waits for nothing, and what does not become an answer is typed.
    ask(&mut queries, "\x1b[6n", 3, Some(A), now);
    queries.sent(B, 3..=3, now);
    assert_eq!(typed(&mut queries, B, "\x1b", now), ("\x1b".to_owned(), true));
    assert_eq!(typed(&mut queries, B, "\x1b[1", now), (String::new(), false));
    assert_eq!(typed(&mut queries, B, ";5A", now), ("\x1b[1;5A".to_owned(), true));
}

#[test]
fn keys_that_look_like_the_beginning_of_an_answer_are_typed_after_a_while() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[6n", 1, None, now);
    queries.sent(A, 1..=1, now);
    assert_eq!(typed(&mut queries, A, "\x1b[", now), (String::new(), false));
    assert_eq!(queries.due_at(), Some(now + PATIENCE));
    assert_eq!(queries.take_due(false, now + PATIENCE / 2), Vec::<Bytes>::new());
    assert_eq!(queries.take_due(false, now + PATIENCE), ["\x1b["]);
    assert_eq!(queries.due_at(), None);
    assert_eq!(typed(&mut queries, A, "A", now + PATIENCE), ("A".to_owned(), true));
}

#[test]
fn a_flood_of_beginnings_is_read_once() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[6n", 1, None, now);
    queries.sent(A, 1..=1, now);
    for (beginning, more) in [("\x1b]", ""), ("\x1b[", ""), ("\x1bP", ""), ("\x1b", "]")] {
        let flood = beginning.repeat(1 << 20) + more + "\x07";
        // Read again and again from each beginning to the end, this would take hours.
        assert_eq!(typed(&mut queries, A, &flood, now), (flood, true));
    }
}

#[test]
fn a_client_that_comes_back_answers_no_old_question() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[6n", 5, Some(A), now);
    ask(&mut queries, "\x1b[c", 7, Some(A), now);
    queries.sent(A, 1..=9, now);
    assert_eq!(typed(&mut queries, A, "\x1b[2;2R\x1b[?1c", now).0, "\x1b[2;2R\x1b[?1c");
    queries.sent(A, 6..=9, now);
    queries.sent(B, 4..=9, now);
    assert_eq!(typed(&mut queries, A, "\x1b[?1cls\r", now), ("ls\r".to_owned(), true));
    assert_eq!(typed(&mut queries, B, "\x1b[2;2R\x1b[?1c", now), (String::new(), false));
}

#[test]
fn an_answer_to_a_later_question_ends_the_wait_for_an_earlier_one() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[?u", 1, Some(A), now);
    ask(&mut queries, "\x1b[c", 2, Some(A), now);
    queries.sent(A, 1..=2, now);
    assert_eq!(typed(&mut queries, A, "\x1b[?1c", now).0, "\x1b[?1c");
    assert_eq!(queries.take_due(true, now + PATIENCE), Vec::<Bytes>::new());
}

#[test]
fn for_a_silent_terminal_the_screen_says_what_every_terminal_says() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[?u", 1, Some(A), now);
    ask(&mut queries, "\x1b[6n", 2, Some(A), now);
    queries.sent(A, 1..=2, now);
    assert_eq!(queries.due_at(), Some(now + PATIENCE));
    assert_eq!(queries.take_due(false, now + PATIENCE), ["own 2"]);
    // The terminal's own answer is late, and the program has one.
    assert_eq!(typed(&mut queries, A, "\x1b[2;2R", now + PATIENCE).0, "");
    assert_eq!(queries.due_at(), None);
}

#[test]
fn when_the_client_in_control_leaves_the_screen_answers_for_it() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[?u", 1, Some(A), now);
    queries.left(A, now);
    assert_eq!(queries.due_at(), Some(now));
    assert_eq!(queries.take_due(true, now), ["own 1"]);
}

#[test]
fn colours_that_a_terminal_told_are_told_again() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    let query = queries.find(b"\x1b]11;?\x07").unwrap().1;
    assert_eq!(queries.ask(&query, 1, None, None, now).unwrap(), "\x1b]11;rgb:0000/0000/0000\x07");
    queries.ask(&query, 2, Some(A), None, now);
    queries.sent(A, 2..=2, now);
    typed(&mut queries, A, "\x1b]11;rgb:fd/f6/e3\x1b\\", now);
    assert_eq!(queries.ask(&query, 3, None, None, now).unwrap(), "\x1b]11;rgb:fd/f6/e3\x07");
}

#[test]
fn what_a_terminal_owes_is_forgotten_in_the_end() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    ask(&mut queries, "\x1b[6n", 1, Some(B), now);
    queries.sent(A, 1..=1, now);
    assert_eq!(typed(&mut queries, A, "\x1b[1;2R", now + OWED), ("\x1b[1;2R".to_owned(), true));
    assert!(queries.terminals.is_empty());
}

#[test]
fn a_flood_of_questions_is_kept_within_bounds() {
    let (mut queries, now) = (Queries::default(), Instant::now());
    for seq in 1..100_000 {
        ask(&mut queries, "\x1b[6n", seq, Some(A), now);
        queries.sent(B, seq..=seq, now);
    }
    assert_eq!((queries.open.len(), queries.newest.len()), (MOST_OPEN, MOST_REMEMBERED));
    assert_eq!(queries.terminals[&B].queries.len(), MOST_REMEMBERED);
    let endless = format!("\x1b]11;{}", "x".repeat(100_000));
    assert_eq!(typed(&mut queries, B, &endless, now).0.len(), endless.len());
    for _ in 0..1000 {
        typed(&mut queries, B, "\x1b[1111111111", now);
    }
    assert!(queries.terminals[&B].begun.len() <= 4096);
}
