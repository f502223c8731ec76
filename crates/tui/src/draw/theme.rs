//! Colours, and the styles that replace them in a terminal without colours.
//!
//! The background is the terminal's own. The colours are from the fixed part of the 256 colours, and of a
//! middle lightness, so that they can be read on black and on white.

use ratatui::style::{Color, Modifier, Style};

/// The middle tones.
const BLUE: u8 = 32;
const GREEN: u8 = 28;
const ORANGE: u8 = 166;
const RED: u8 = 160;
const VIOLET: u8 = 133;
const GREY: u8 = 243;

/// The styles.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    colour: bool,
}

impl Theme {
    /// With colours, or without.
    pub const fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// Titles of parts, and the names of keys.
    pub fn title(self) -> Style {
        self.tone(BLUE).add_modifier(Modifier::BOLD)
    }

    /// The frame of a part; `is_chosen`: the keyboard acts on this part.
    pub fn frame(self, is_chosen: bool) -> Style {
        match (is_chosen, self.colour) {
            (true, true) => self.tone(BLUE),
            (true, false) => Style::new().add_modifier(Modifier::BOLD),
            (false, _) => self.quiet(),
        }
    }

    /// The chosen row or tab.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Text that matters less.
    pub fn quiet(self) -> Style {
        if self.colour { self.tone(GREY) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    /// A good state.
    pub fn good(self) -> Style {
        self.tone(GREEN)
    }

    /// A state that is busy, or will soon be bad.
    pub fn warn(self) -> Style {
        self.tone(ORANGE)
    }

    /// A bad state.
    pub fn bad(self) -> Style {
        self.tone(RED).add_modifier(Modifier::BOLD)
    }

    /// Text that models write.
    pub fn answer(self) -> Style {
        self.tone(VIOLET)
    }

    /// Code in a text of a model.
    pub fn code(self) -> Style {
        self.tone(GREEN)
    }

    /// Whether there are colours.
    pub const fn has_colour(self) -> bool {
        self.colour
    }

    /// Curves.
    pub fn curve(self) -> Style {
        self.tone(BLUE)
    }

    fn tone(self, tone: u8) -> Style {
        if self.colour { Style::new().fg(Color::Indexed(tone)) } else { Style::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of one of the fixed 240 colours (WCAG 2).
    fn luminance(tone: u8) -> f64 {
        let levels = [0_u8, 95, 135, 175, 215, 255];
        let rgb = match tone {
            16..=231 => [36, 6, 1].map(|step| levels[usize::from((tone - 16) / step % 6)]),
            _ => [8 + (tone - 232) * 10; 3],
        };
        let linear = rgb.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    #[test]
    fn every_colour_can_be_read_on_black_and_on_white() {
        for tone in [BLUE, GREEN, ORANGE, RED, VIOLET, GREY] {
            let luminance = luminance(tone);
            let (on_black, on_white) = ((luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05));
            assert!(on_black > 3.5 && on_white > 3.5, "{tone}: {on_black:.1} {on_white:.1}");
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let theme = Theme::new(false);
        for style in [theme.title(), theme.good(), theme.bad(), theme.quiet(), theme.frame(true)] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
