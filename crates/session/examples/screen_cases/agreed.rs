//! The part of the random streams on which terminals agree.
//!
//! Emulators differ in details that no program relies on. A piece of a stream that this crate and
//! xterm.js read differently says nothing about snapshots, so such pieces are left out, each for a
//! reason. Some pieces differ only together with certain others, so there are streams of several kinds.

/// The characters outside of ASCII that may occur. Control characters of eight bits are not among them,
/// since they begin sequences in the middle of words.
const KNOWN: &str = "漢字🦀é─\u{ad}\u{301}\u{200d}\u{fe0f}";

/// The characters that may follow `ESC`.
const BEGINNINGS: &str = "[]PX^_()*+#78DEMHcZ=>\\%no}|~";

/// The kind of a stream. Each kind leaves out other sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Colours, and cursors that are saved. Left out: scrolling down, since terminals disagree whether the
    /// new rows have the pen's colour; and resets, since terminals disagree whether these forget saved
    /// titles.
    Coloured,
    /// Wide characters in colours. Left out: inserting blanks in the middle of a wide character, and
    /// printing at the edge where lines are not wrapped. Both leave half a character in xterm.js.
    Wide,
    /// Character sets and links. Left out: saving the cursor. With the cursor, xterm.js restores a set as it
    /// was and not by its name, and does not restore links.
    Sets,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Coloured, Self::Wide, Self::Sets];

    /// The text of those pieces that mean the same everywhere, in the form in which clients are sent it.
    pub(crate) fn agreed(self, pieces: &[Vec<u8>]) -> String {
        let texts = pieces.iter().map(|piece| String::from_utf8_lossy(piece));
        let agreed = texts.filter(|text| !differs(text) && !is_open(text) && self.goes_with(text));
        agreed.map(|text| put_right(&text)).collect()
    }

    fn goes_with(self, text: &str) -> bool {
        let wide = text.contains(['漢', '字', '🦀']);
        let link = text.starts_with("\x1b]8;");
        let is_one_of = |ends: &str| control(text).is_some_and(|(_, end)| ends.contains(end));
        let underlined = ["4:", "58:", "59", "21"].iter().any(|number| text.contains(number));
        let plain = !is_set(text) && !link && !underlined && !is_one_of("T") && text != "\x1bc";
        match self {
            Self::Coloured => plain && !wide,
            // Erasures that spare protected cells leave half a character, too.
            Self::Wide => {
                let spares = text.starts_with("\x1b[?") && is_one_of("JK");
                plain && !is_one_of("@") && !spares && text != "\x1b[?7l"
            }
            Self::Sets => {
                let saves = ["\x1b7", "\x1b8"].contains(&text)
                    || text.contains("?1048")
                    || text.contains("?1049");
                !wide && !saves && !is_one_of("suTt")
            }
        }
    }
}

/// A text of lines and pens that means the same everywhere, and that writes no line twice.
pub(crate) fn flow(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut pens = pieces.next().unwrap_or_default().to_owned();
    for (numbers, rest) in pieces.filter_map(|piece| piece.split_once('m')) {
        let numbers = numbers.replace("38;5;200", "95").replace("48;5;3", "105");
        // xterm.js has one kind of blinking, and mixes one colour of underlines with the next.
        let known = |number: &&str| !number.starts_with("58") && !["6", "59"].contains(number);
        let kept = numbers.split(';').filter(known);
        let kept: Vec<&str> = kept.collect();
        pens.push_str(&format!("\x1b[{}m{rest}", kept.join(";")));
    }
    let lines = pens.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    put_on_something(&lines.replace(['\u{85}', '\u{9b}'], ""))
}

fn is_end(text: &str, wanted: char) -> bool {
    control(text).is_some_and(|(_, end)| end == wanted)
}

/// Whether a piece names a character set, or puts one in use.
fn is_set(text: &str) -> bool {
    let places = ["\x1b(", "\x1b)", "\x1b*", "\x1b+", "\x1b%", "\x0e", "\x0f"];
    let shifts = ["\x1bn", "\x1bo", "\x1b}", "\x1b|", "\x1b~"];
    places.iter().any(|set| text.starts_with(set)) || shifts.contains(&text)
}

/// Whether a piece ends in the middle of a sequence. The next piece would end it by chance, in every
/// terminal at another place. (Cases are still cut in the middle of sequences.)
fn is_open(text: &str) -> bool {
    let closed = ["\x07", "\x1b\\"].iter().any(|end| text.ends_with(end));
    let string = ["\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_"].iter().any(|s| text.starts_with(s));
    let known = |sequence: &str| sequence.starts_with(|c| BEGINNINGS.contains(c));
    (string && !closed)
        || ["\x1b[", "\x1b("].contains(&text)
        || !text.split('\x1b').skip(1).all(known)
}

/// Whether xterm.js reads a piece differently from this crate, or not at all. In the comments, "it" is xterm.js.
fn differs(text: &str) -> bool {
    // It repeats as often as the number says, for minutes.
    text.contains("99999999999")
        // Bytes that are not UTF-8, in the middle of a sequence; and characters that are not equally wide everywhere.
        || text.chars().any(|c| !c.is_ascii() && !KNOWN.contains(c))
        // A sequence with control characters within it.
        || text.contains("\x1b[1\r\n")
        // Filling the page with E: terminals disagree whether the pen's look is used.
        || text == "\x1b#8"
        // It has tab stops for each page.
        || text == "\x1bH"
        // It does not know this sequence for the cursor's look.
        || text.starts_with("\x1b]50;")
        // It does not know these sequences, which protect cells.
        || ["\x1bV", "\x1bW"].contains(&text)
        || control(text).is_some_and(|(numbers, end)| control_differs(numbers, end))
}

/// Whether xterm.js reads a control sequence differently. In the comments, "it" is xterm.js.
fn control_differs(numbers: &str, end: char) -> bool {
    let has = |wanted: &[&str]| numbers.split(';').any(|number| wanted.contains(&number));
    match end {
        // It fails if the cursor is in the last cell.
        'J' => has(&["1", "?1"]),
        // In xterm.js a reset of the pen ends protection.
        'q' => numbers.ends_with('"'),
        // It changes columns behind the last one.
        '}' | '~' => true,
        '@' | 'A' => numbers.ends_with(' '),
        // It has one kind of blinking. With the cursor it does not restore the kind and the colour of an underline. Of
        // an incomplete colour it drops more numbers.
        'm' => has(&["6", "21", "59"]) || numbers.contains(':') || is_half_a_colour(numbers),
        // It moves the cursor beyond the margin.
        'e' => true,
        // It has tab stops for each page, and does not go back to one from behind the last column.
        'g' | 'W' | 'Z' => true,
        // At a soft reset it forgets more modes.
        'p' => numbers == "!",
        // In origin mode it counts from the margin twice when it moves by columns. It does not know
        // the older forms of mouse reports. Where lines are written twice, terminals disagree about
        // which rows are wrapped, and so about how far a backspace goes back.
        'h' | 'l' => has(&["?6", "?45", "?1005", "?1015"]),
        _ => false,
    }
}

fn is_half_a_colour(numbers: &str) -> bool {
    let whole = ["38;5;200", "48;5;3", "38;2;1;2;3", "48;2;9;8;7"];
    let rest = whole.iter().fold(numbers.to_owned(), |rest, colour| rest.replace(colour, ""));
    rest.split(';').any(|number| ["38", "48", "58"].contains(&number))
}

/// The numbers and the last character of a control sequence; `None` if `text` is something else.
fn control(text: &str) -> Option<(&str, char)> {
    let inner = text.strip_prefix("\x1b[")?;
    let end = inner.chars().next_back()?;
    inner.strip_suffix(end).map(|numbers| (numbers, end))
}

/// Adds what makes a piece mean the same in xterm.js ("it" in the comments) as in this crate.
fn put_right(text: &str) -> String {
    match text {
        // xterm.js has margins for each page.
        "\x1b[?47h" | "\x1b[?47l" | "\x1b[?1047h" | "\x1b[?1047l" | "\x1b[?1049h"
        | "\x1b[?1049l" => {
            format!("\x1b[r{text}")
        }
        link if link.starts_with("\x1b]8;") => format!("{link}link\x1b]8;;\x07"),
        // It does not restore the state in which the next character wraps. A step back ends that state in every
        // terminal.
        save if save == "\x1b7" || save == "\x1b[?1048h" || is_end(save, 's') => {
            format!("\x08{save}")
        }
        // At a reset it keeps the title and some modes.
        "\x1bc" => "\x1b]2;\x07\x1b[20l\x1b[?12l\x1b[?25h\x1bc".to_owned(),
        // It repeats a character with its marks.
        repeat if is_end(repeat, 'b') => format!("x{repeat}"),
        sequence if sequence.starts_with('\x1b') => sequence.to_owned(),
        // Its character set of lines has no blank for `_`.
        word => put_on_something(&word.replace('_', "-")),
    }
}

/// Leaves out combining marks that follow no character, or a character that may end a sequence: xterm.js
/// gives such marks a cell of their own.
fn put_on_something(word: &str) -> String {
    let mut base = false;
    let kept = word.chars().filter(|character| {
        let mark = matches!(character, '\u{301}' | '\u{200d}' | '\u{fe0f}');
        base = if mark { base } else { !character.is_control() && *character != 'm' };
        base || !mark
    });
    kept.collect()
}
