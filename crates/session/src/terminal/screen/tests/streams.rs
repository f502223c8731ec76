//! Generated input: streams as programs write them, and random streams.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Screen, Size};

#[derive(Debug, Clone)]
pub(super) enum Happening {
    Output(Vec<u8>),
    Resize(Size),
}

/// Feeds all output, cut into pieces of these lengths, which repeat.
pub(super) fn play(screen: &mut Screen, happenings: &[Happening], cuts: &[usize]) {
    let mut cuts = cuts.iter().copied().cycle();
    for happening in happenings {
        match happening {
            Happening::Resize(size) => screen.resize(*size),
            Happening::Output(bytes) => {
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let cut = cuts.next().unwrap_or(usize::MAX).clamp(1, rest.len());
                    screen.feed(&rest[..cut]);
                    rest = &rest[cut..];
                }
            }
        }
    }
}

pub(super) fn sizes() -> impl Strategy<Value = Size> {
    let of = |(cols, rows)| Size::new(cols, rows);
    prop_oneof![
        6 => (1u16..9, 1u16..6).prop_map(of),
        3 => (1u16..24, 1u16..10).prop_map(of),
        1 => Just(Size::new(80, 24)),
    ]
}

pub(super) fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![usize::MAX]), vec(1usize..4, 1..4), vec(1usize..64, 1..8)]
}

pub(super) fn happenings(most: usize) -> impl Strategy<Value = Vec<Happening>> {
    let happening = prop_oneof![
        12 => vec(piece(), 1..12).prop_map(|pieces| Happening::Output(pieces.concat())),
        1 => sizes().prop_map(Happening::Resize),
    ];
    vec(happening, 0..most)
}

/// Text and pens only, which skimming may skip.
pub(super) fn text_and_pens(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![6 => line(), 3 => pen(), 1 => word()], 0..most).prop_map(|v| v.concat())
}

pub(super) fn piece() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        10 => word(),
        4 => pen(),
        6 => control(),
        8 => csi(),
        3 => escape(),
        5 => mode(),
        3 => osc(),
        1 => string(),
        1 => vec(any::<u8>(), 1..6),
        2 => line(),
    ]
    .boxed()
}

fn word() -> BoxedStrategy<Vec<u8>> {
    let chars = select(vec![
        'a', 'b', 'x', 'q', ' ', ' ', '_', 'm', '漢', '字', '🦀', 'é', '─', '\u{301}', '\u{200d}',
        '\u{fe0f}', '\u{ad}', '\u{85}', '\u{9b}',
    ]);
    vec(chars, 1..14).prop_map(|chars| chars.into_iter().collect::<String>().into_bytes()).boxed()
}

fn line() -> BoxedStrategy<Vec<u8>> {
    let end = select(vec!["\r\n", "\r\n", "\r\n", "\n", "\r"]);
    (word(), pen(), word(), end)
        .prop_map(|(a, pen, b, end)| [a, pen, b, end.as_bytes().to_vec()].concat())
        .boxed()
}

fn control() -> BoxedStrategy<Vec<u8>> {
    select(vec![
        "\r\n", "\n", "\r", "\t", "\x08", "\x0e", "\x0f", "\x07", "\x18", "\x0b", "\x7f", "\0",
    ])
    .prop_map(|control| control.as_bytes().to_vec())
    .boxed()
}

fn numbers() -> BoxedStrategy<String> {
    let number = prop_oneof![
        8 => (0u32..8).prop_map(|n| n.to_string()),
        2 => (0u32..90).prop_map(|n| n.to_string()),
        1 => Just("99999999999".to_owned()),
        2 => Just(String::new()),
    ];
    vec(number, 0..4).prop_map(|numbers| numbers.join(";")).boxed()
}

fn pen() -> BoxedStrategy<Vec<u8>> {
    let number = select(vec![
        "",
        "0",
        "1",
        "2",
        "3",
        "4",
        "4:2",
        "4:3",
        "4:4",
        "4:5",
        "7",
        "8",
        "9",
        "21",
        "22",
        "23",
        "24",
        "27",
        "28",
        "29",
        "31",
        "35",
        "39",
        "42",
        "47",
        "49",
        "92",
        "103",
        "38;5;200",
        "48;5;3",
        "38;2;1;2;3",
        "48;2;9;8;7",
        "58:5:7",
        "58:2::1:2:3",
        "59",
        "5",
        "25",
        "53",
        "55",
        "4:0",
    ]);
    vec(number, 0..4).prop_map(|n| format!("\x1b[{}m", n.join(";")).into_bytes()).boxed()
}

fn csi() -> BoxedStrategy<Vec<u8>> {
    let ends: Vec<char> = "@ABCDEFGHIJKLMPSTXZabdefgmrsu`".chars().collect();
    let rare = select(vec![
        " q", "?5W", "!p", "?u", ">1u", ">5u", "<u", "=3;2u", "=1u", ">4;2m", "c", "6n", "b",
        "1\"q", "0\"q", "?J", "?1J", "?2J", "?K", "?1K", "?2K", "2'}", "2'~", "2 @", " A",
    ]);
    prop_oneof![
        9 => (numbers(), select(ends)).prop_map(|(n, end)| format!("\x1b[{n}{end}")),
        1 => (0u8..7, Just(" q")).prop_map(|(n, end)| format!("\x1b[{n}{end}")),
        1 => rare.prop_map(|rest| format!("\x1b[{rest}")),
    ]
    .prop_map(String::into_bytes)
    .boxed()
}

fn escape() -> BoxedStrategy<Vec<u8>> {
    let all = vec![
        "7", "8", "7", "8", "D", "E", "M", "H", "c", "=", ">", "(0", "(B", ")0", "*0", "+0", "#8",
        "[", "", "Z", "(", "\\", "(A", "(K", "*=", "n", "o", "}", "|", "~", "%G", "V", "W",
    ];
    select(all).prop_map(|rest| format!("\x1b{rest}").into_bytes()).boxed()
}

fn mode() -> BoxedStrategy<Vec<u8>> {
    let private = vec![
        1u16, 3, 5, 6, 6, 7, 7, 9, 12, 25, 45, 47, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006,
        1007, 1015, 1042, 1047, 1048, 1048, 1049, 1049, 1049, 2004, 2026, 2031, 2048,
    ];
    prop_oneof![
        4 => (select(private), select(vec!['h', 'h', 'l'])).prop_map(|(n, end)| format!("\x1b[?{n}{end}")),
        1 => (select(vec![4, 20]), select(vec!['h', 'l'])).prop_map(|(n, end)| format!("\x1b[{n}{end}")),
        2 => (1u16..8, 1u16..8).prop_map(|(top, bottom)| format!("\x1b[{top};{bottom}r")),
    ]
    .prop_map(String::into_bytes)
    .boxed()
}

fn osc() -> BoxedStrategy<Vec<u8>> {
    let all = vec![
        "2;a title",
        "0;x;y",
        "2;",
        "8;;https://example.org/a",
        "8;id=k;https://example.org/b",
        "8;;",
        "4;1;rgb:11/22/33",
        "104",
        "10;#ffffff",
        "11;?",
        "12;rgb:1/2/3",
        "112",
        "50;CursorShape=1",
        "52;c;aGVsbG8=",
        "7;file:///tmp",
        "9999;x",
    ];
    let end = select(vec!["\x07", "\x1b\\", "\x1b\\", "\x18", "", "\x1b[m"]);
    let titles = select(vec!["\x1b[22;2t", "\x1b[23;2t"]);
    prop_oneof![
        5 => (select(all), end).prop_map(|(text, end)| format!("\x1b]{text}{end}")),
        1 => titles.prop_map(str::to_owned),
    ]
    .prop_map(String::into_bytes)
    .boxed()
}

fn string() -> BoxedStrategy<Vec<u8>> {
    let all = vec![
        "\x1bP+q544e\x1b\\",
        "\x1bPq#0;2;0~\x1b\\",
        "\x1b_Gf=100;AAAA\x1b\\",
        "\x1b^pm\x1b\\",
        "\x1bXsos",
        "\x1bP1$r",
        "\x1b_x\x1b",
        "\x1b[1\x1b[31m",
        "\x1b[1\r\nm",
        "\x1b(\x1b)0",
    ];
    select(all).prop_map(|text| text.as_bytes().to_vec()).boxed()
}
