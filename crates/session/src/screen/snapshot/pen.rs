//! How characters look: the difference to how the last one looked, as a control sequence.

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

use super::super::cells;
use super::Painter;

const FLAGS: [(Flags, &str); 11] = [
    (Flags::BOLD, "1"),
    (Flags::DIM, "2"),
    (Flags::ITALIC, "3"),
    (Flags::UNDERLINE, "4"),
    (Flags::DOUBLE_UNDERLINE, "4:2"),
    (Flags::UNDERCURL, "4:3"),
    (Flags::DOTTED_UNDERLINE, "4:4"),
    (Flags::DASHED_UNDERLINE, "4:5"),
    (Flags::INVERSE, "7"),
    (Flags::HIDDEN, "8"),
    (Flags::STRIKEOUT, "9"),
];

/// What a cell looks like, beside its characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pen {
    fg: Color,
    bg: Color,
    flags: Flags,
    underline: Option<Color>,
    link: Option<Hyperlink>,
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
            flags: cells::looks(cell),
            underline: cell.underline_color(),
            link: cell.hyperlink(),
        }
    }

    /// What erases to `bg`.
    pub(super) fn erasing(bg: Color) -> Self {
        Self { bg, ..Self::default() }
    }

    /// Whether this is the pen of a reset terminal, but perhaps for a link.
    fn is_plain(&self) -> bool {
        *self == Self { link: self.link.clone(), ..Self::default() }
    }

    /// Whether `cell` looks like this.
    fn suits(&self, cell: &Cell) -> bool {
        (self.fg, self.bg, self.flags) == (cell.fg, cell.bg, cells::looks(cell))
            && match &cell.extra {
                None => self.underline.is_none() && self.link.is_none(),
                Some(_) => {
                    self.underline == cell.underline_color() && self.link == cell.hyperlink()
                }
            }
    }

    /// The numbers that make a pen like `self` into one like `new`.
    fn numbers(&self, new: &Self) -> Vec<String> {
        let reset = !new.flags.contains(self.flags);
        let old = if reset { &Self::default() } else { self };
        let mut numbers: Vec<String> = reset.then(|| "0".to_owned()).into_iter().collect();
        let added = new.flags.difference(old.flags);
        let flags = FLAGS.iter().filter(|(flag, _)| added.contains(*flag));
        numbers.extend(flags.map(|(_, number)| (*number).to_owned()));
        if old.fg != new.fg {
            numbers.push(colour(new.fg, 30));
        }
        if old.bg != new.bg {
            numbers.push(colour(new.bg, 40));
        }
        if old.underline != new.underline {
            numbers.push(underline_colour(new.underline));
        }
        numbers
    }
}

impl Painter {
    /// Makes the pen suit a cell.
    pub(super) fn dip(&mut self, cell: &Cell) {
        if !self.pen.suits(cell) {
            self.take(Pen::of(cell));
        }
    }

    /// Changes the pen.
    pub(super) fn take(&mut self, pen: Pen) {
        let numbers = self.pen.numbers(&pen);
        if !numbers.is_empty() && pen.is_plain() {
            self.out.push_str("\x1b[m");
        } else if !numbers.is_empty() {
            self.put(format_args!("\x1b[{}m", numbers.join(";")));
        }
        if self.pen.link != pen.link {
            self.link(pen.link.as_ref());
        }
        self.pen = pen;
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

/// A colour as numbers; `base` is 30 for the foreground, 40 for the background.
fn colour(colour: Color, base: u8) -> String {
    match colour {
        Color::Named(name) => named(name as usize, base.into()).to_string(),
        Color::Indexed(index) => format!("{};5;{index}", base + 8),
        Color::Spec(Rgb { r, g, b }) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

fn named(name: usize, base: usize) -> usize {
    match name {
        0..=7 => base + name,
        8..=15 => base + 60 + name - 8,
        _ => base + 9,
    }
}

/// With colons: a terminal that does not know it must not take its numbers for others.
fn underline_colour(colour: Option<Color>) -> String {
    match colour {
        None => "59".to_owned(),
        Some(Color::Indexed(index)) => format!("58:5:{index}"),
        Some(Color::Spec(Rgb { r, g, b })) => format!("58:2::{r}:{g}:{b}"),
        Some(Color::Named(name)) if (name as usize) < NamedColor::Foreground as usize => {
            format!("58:5:{}", name as usize)
        }
        Some(Color::Named(_)) => "59".to_owned(),
    }
}
