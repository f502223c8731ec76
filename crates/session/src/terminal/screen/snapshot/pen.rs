//! The looks of characters, as control sequences that change the previous look into the next.

use std::fmt;

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

use super::super::cells;
use super::super::emulator::Guard;
use super::Painter;

/// The numbers that switch each look on, except underlines.
const FLAGS: [(Flags, &str); 8] = [
    (Flags::BOLD, "1"),
    (Flags::DIM, "2"),
    (Flags::ITALIC, "3"),
    (cells::BLINKING, "5"),
    (Flags::INVERSE, "7"),
    (Flags::HIDDEN, "8"),
    (Flags::STRIKEOUT, "9"),
    (cells::OVERLINE, "53"),
];

/// The numbers that switch each kind of underline on.
const UNDERLINES: [&str; 5] = ["4", "4:2", "4:3", "4:4", "4:5"];

/// The numbers that switch looks off, some of them several looks at once.
const OFF: [(Flags, &str); 8] = [
    (Flags::BOLD.union(Flags::DIM), "22"),
    (Flags::ITALIC, "23"),
    (cells::UNDERLINES, "24"),
    (cells::BLINKING, "25"),
    (Flags::INVERSE, "27"),
    (Flags::HIDDEN, "28"),
    (Flags::STRIKEOUT, "29"),
    (cells::OVERLINE, "55"),
];

/// The look of a cell, without its characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pen {
    fg: Color,
    bg: Color,
    flags: Flags,
    underline: Option<Color>,
    link: Option<Hyperlink>,
    protects: bool,
}

impl Default for Pen {
    fn default() -> Self {
        Self::of(&Cell::default())
    }
}

impl Pen {
    pub(super) fn of(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            flags: cells::looks(cell).difference(cells::PROTECTED),
            underline: cell.underline_color(),
            link: cell.hyperlink(),
            protects: cell.flags.contains(cells::PROTECTED),
        }
    }

    pub(super) fn erasing(bg: Color) -> Self {
        Self { bg, ..Self::default() }
    }

    /// Whether this is the pen of a reset terminal, apart from a link and protection.
    fn is_plain(&self) -> bool {
        *self == Self { link: self.link.clone(), protects: self.protects, ..Self::default() }
    }

    /// Whether `cell` has this look.
    pub(super) fn suits(&self, cell: &Cell) -> bool {
        let protects = if self.protects { cells::PROTECTED } else { Flags::empty() };
        (self.fg, self.bg, self.flags.union(protects)) == (cell.fg, cell.bg, cells::looks(cell))
            && match &cell.extra {
                None => self.underline.is_none() && self.link.is_none(),
                Some(_) => {
                    self.underline == cell.underline_color() && self.link == cell.hyperlink()
                }
            }
    }

    /// A sequence that gives a plain pen this look, without its last character.
    pub(super) fn numbers(&self) -> String {
        let mut text = String::new();
        Self::default().change(self, &mut Numbers::new(&mut text));
        text
    }

    /// The kind of underline, from 1; 0 means no underline.
    fn kind(&self) -> usize {
        let flags = self.flags.intersection(cells::UNDERLINES);
        (0..=5).find(|kind| cells::underline(*kind) == flags).map_or(0, usize::from)
    }

    /// Whether `new` may take fewer numbers from a plain pen than from this pen.
    fn has_more_than(&self, new: &Self) -> bool {
        let plain = Self::default();
        !new.flags.contains(self.flags.difference(cells::UNDERLINES))
            || (self.kind() > 0 && new.kind() == 0)
            || (self.fg != plain.fg && new.fg == plain.fg)
            || (self.bg != plain.bg && new.bg == plain.bg)
    }

    /// Adds the numbers that change the pen `self` into `new`.
    fn change(&self, new: &Self, numbers: &mut Numbers<'_>) {
        let mut flags = self.flags;
        for (group, off) in OFF {
            let ended = flags.intersection(group).difference(new.flags);
            // A new underline replaces the old one.
            let replaced = group == cells::UNDERLINES && new.kind() > 0;
            if !ended.is_empty() && !replaced {
                numbers.add(format_args!("{off}"));
                flags.remove(group);
            }
        }
        for (_, on) in FLAGS.iter().filter(|(flag, _)| new.flags.difference(flags).contains(*flag))
        {
            numbers.add(format_args!("{on}"));
        }
        if let Some(on) = new.kind().checked_sub(1).filter(|_| self.kind() != new.kind()) {
            numbers.add(format_args!("{}", UNDERLINES[on]));
        }
        if self.fg != new.fg {
            numbers.colour(new.fg, 30);
        }
        if self.bg != new.bg {
            numbers.colour(new.bg, 40);
        }
        if self.underline != new.underline {
            numbers.underline_colour(new.underline);
        }
    }
}

impl Painter {
    /// Changes the pen to the look of a cell.
    pub(super) fn match_pen(&mut self, cell: &Cell) {
        if !self.pen.suits(cell) {
            self.set_pen(Pen::of(cell));
        }
    }

    pub(super) fn set_pen(&mut self, pen: Pen) {
        let start = self.out.len();
        self.pen.change(&pen, &mut Numbers::new(&mut self.out));
        if start < self.out.len() {
            if pen.is_plain() {
                self.out.truncate(start);
                self.out.push_str("\x1b[");
            } else if self.pen.has_more_than(&pen) {
                self.begin_with_reset(start, &pen);
            }
            self.out.push('m');
        }
        if self.pen.link != pen.link {
            self.link(pen.link.as_ref());
        }
        // In some terminals a reset of the pen ends protection, too.
        let resets = ["\x1b[m", "\x1b[0"].iter().any(|reset| self.out[start..].starts_with(reset));
        if self.pen.protects != pen.protects || (resets && pen.protects) {
            let guard = self.guard;
            self.out.push_str(match (pen.protects, guard) {
                (true, Guard::All) => "\x1bV",
                (true, _) => "\x1b[1\"q",
                (false, Guard::All) => "\x1bW",
                (false, _) => "\x1b[0\"q",
            });
        }
        self.pen = pen;
    }

    /// Replaces the sequence that begins at `start` with one that begins with a reset, if that is
    /// shorter.
    fn begin_with_reset(&mut self, start: usize, pen: &Pen) {
        let mut afresh = String::new();
        let mut numbers = Numbers::new(&mut afresh);
        numbers.add(format_args!("0"));
        Pen::default().change(pen, &mut numbers);
        if afresh.len() < self.out.len() - start {
            self.out.truncate(start);
            self.out.push_str(&afresh);
        }
    }

    fn link(&mut self, link: Option<&Hyperlink>) {
        match link {
            None => self.out.push_str("\x1b]8;;\x1b\\"),
            Some(link) if link.id().is_empty() => {
                self.put(format_args!("\x1b]8;;{}\x1b\\", link.uri()));
            }
            Some(link) => self.put(format_args!("\x1b]8;id={};{}\x1b\\", link.id(), link.uri())),
        }
    }
}

/// A sequence that changes the pen, without its final byte. Without a number nothing is written.
struct Numbers<'a> {
    out: &'a mut String,
    start: usize,
}

impl<'a> Numbers<'a> {
    fn new(out: &'a mut String) -> Self {
        let start = out.len();
        Self { out, start }
    }

    fn add(&mut self, number: fmt::Arguments<'_>) {
        self.out.push_str(if self.out.len() == self.start { "\x1b[" } else { ";" });
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(self.out, number);
    }

    /// Adds a colour. `base` is 30 for the foreground, 40 for the background.
    fn colour(&mut self, colour: Color, base: usize) {
        let extended = base + 8;
        match colour {
            Color::Named(name) => self.add(format_args!("{}", named(name as usize, base))),
            Color::Indexed(index) => self.add(format_args!("{extended};5;{index}")),
            Color::Spec(Rgb { r, g, b }) => self.add(format_args!("{extended};2;{r};{g};{b}")),
        }
    }

    /// Adds the colour of underlines. The numbers are separated by colons, so that a terminal that
    /// does not know the sequence does not read them as other looks.
    fn underline_colour(&mut self, colour: Option<Color>) {
        match colour {
            Some(Color::Indexed(index)) => self.add(format_args!("58:5:{index}")),
            Some(Color::Spec(Rgb { r, g, b })) => self.add(format_args!("58:2::{r}:{g}:{b}")),
            Some(Color::Named(name)) if (name as usize) < NamedColor::Foreground as usize => {
                self.add(format_args!("58:5:{}", name as usize));
            }
            None | Some(Color::Named(_)) => self.add(format_args!("59")),
        }
    }
}

fn named(name: usize, base: usize) -> usize {
    match name {
        0..=7 => base + name,
        8..=15 => base + 60 + name - 8,
        _ => base + 9,
    }
}
