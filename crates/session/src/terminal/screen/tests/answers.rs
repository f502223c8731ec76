//! A screen's answers to a program.

use super::super::Screen;
use super::fed;
use crate::terminal::query::Queries;

/// The output to a screen of 80 by 24 cells, the question at its end, and the answer.
const CASES: [(&str, &str, &str); 33] = [
    ("", "\x1b[c", "\x1b[?62;6;22c"),
    ("", "\x1b[0c", "\x1b[?62;6;22c"),
    ("", "\x1bZ", "\x1b[?62;6;22c"),
    ("", "\x1b[>c", "\x1b[>1;10;0c"),
    ("", "\x1b[=c", "\x1bP!|00000000\x1b\\"),
    ("", "\x1b[5n", "\x1b[0n"),
    ("abc", "\x1b[6n", "\x1b[1;4R"),
    ("\r\nab", "\x1b[?6n", "\x1b[?2;3R"),
    ("\x1b[5;10r\x1b[?6h\x1b[2;3H", "\x1b[6n", "\x1b[2;3R"),
    ("", "\x1b[4$p", "\x1b[4;2$y"),
    ("\x1b[4h", "\x1b[4$p", "\x1b[4;1$y"),
    ("", "\x1b[?7$p", "\x1b[?7;1$y"),
    ("\x1b[?2004h", "\x1b[?2004$p", "\x1b[?2004;1$y"),
    ("", "\x1b[?2026$p", "\x1b[?2026;2$y"),
    ("\x1b[?2031h", "\x1b[?2031$p", "\x1b[?2031;1$y"),
    ("\x1b[?47h", "\x1b[?1049$p", "\x1b[?1049;1$y"),
    ("", "\x1b[?69$p", "\x1b[?69;0$y"),
    ("", "\x1b[?31337$p", "\x1b[?31337;0$y"),
    ("\x1b[1;4:3;31m", "\x1bP$qm\x1b\\", "\x1bP1$r0;1;4:3;31m\x1b\\"),
    ("", "\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"),
    ("\x1b[2;9r", "\x1bP$qr\x1b\\", "\x1bP1$r2;9r\x1b\\"),
    ("\x1b[5 q", "\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"),
    ("\x1b[1\"q", "\x1bP$q\"q\x1b\\", "\x1bP1$r1\"q\x1b\\"),
    ("", "\x1bP$qx\x1b\\", "\x1bP0$r\x1b\\"),
    ("", "\x1bP+q544e;00\x1b\\", "\x1bP1+r544e=787465726d2d323536636f6c6f72\x1b\\\x1bP0+r00\x1b\\"),
    ("\x1b]11;#102030\x07", "\x1b]11;?\x07", "\x1b]11;rgb:1010/2020/3030\x07"),
    ("", "\x1b]4;1;?\x1b\\", "\x1b]4;1;rgb:cdcd/0000/0000\x1b\\"),
    ("", "\x1b]4;231;?\x1b\\", "\x1b]4;231;rgb:ffff/ffff/ffff\x1b\\"),
    ("", "\x1b[18t", "\x1b[8;24;80t"),
    ("", "\x1b[14t", "\x1b[4;480;800t"),
    ("", "\x1b[16t", "\x1b[6;20;10t"),
    ("\x1b[>5u", "\x1b[?u", "\x1b[?5u"),
    ("\x1b[>4;2m", "\x1b[?4m", "\x1b[>4;2m"),
];

fn answer(screen: &Screen, question: &str) -> Option<String> {
    let (_, query) = Queries::default().find(question.as_bytes()).unwrap();
    screen.answer(&query)
}

#[test]
fn a_screen_answers_what_it_is_asked() {
    for (written, question, expected) in CASES {
        let screen = fed(80, 24, &format!("{written}{question}"));
        assert_eq!(
            answer(&screen, question).as_deref(),
            Some(expected),
            "{written:?} {question:?}"
        );
    }
}

#[test]
fn what_a_screen_cannot_know_it_does_not_answer() {
    let screen = fed(80, 24, "");
    for question in ["\x1b]11;?\x07", "\x1b[21t", "\x1b]52;c;?\x07", "\x1b_Gi=1,a=q;\x1b\\"] {
        assert_eq!(answer(&screen, question), None, "{question:?}");
    }
    assert!(answer(&screen, "\x1b[>q").unwrap().starts_with("\x1bP>|Warren "));
}
