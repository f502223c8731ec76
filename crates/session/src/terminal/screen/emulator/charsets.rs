//! The character sets of a terminal: four are named, and one of them is in use.

use alacritty_terminal::vte::ansi::StandardCharset;

/// A character set, by the character that names it in `ESC ( character`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Charset(char);

impl Charset {
    pub(in super::super) const ASCII: Self = Self('B');
    /// Lines and other drawings.
    const GRAPHICS: Self = Self('0');

    /// The set with this name, if it is known.
    fn named(name: char) -> Option<Self> {
        let same = match name {
            '5' => 'C',
            'f' => 'R',
            '9' => 'Q',
            '6' | '`' => 'E',
            '7' => 'H',
            '1' => 'B',
            '2' => '0',
            other => other,
        };
        let set = Self(same);
        (set == Self::ASCII || set == Self::GRAPHICS || set.national().is_some()).then_some(set)
    }

    pub(in super::super) const fn name(self) -> char {
        self.0
    }

    pub(in super::super) fn map(self, character: char) -> char {
        match self {
            Self::ASCII => character,
            Self::GRAPHICS => StandardCharset::SpecialCharacterAndLineDrawing.map(character),
            _ => self.map_national(character).unwrap_or(character),
        }
    }

    fn national(self) -> Option<&'static str> {
        NATIONAL.iter().find(|(name, _)| *name == self.0).map(|(_, characters)| *characters)
    }

    fn map_national(self, character: char) -> Option<char> {
        let place = REPLACED.chars().position(|replaced| replaced == character)?;
        self.national()?.chars().nth(place)
    }
}

/// The characters of ASCII that national sets replace.
const REPLACED: &str = "#@[\\]^_`{|}~";

/// The national sets: their names, and the characters that they have in place of [`REPLACED`].
const NATIONAL: [(char, &str); 12] = [
    ('A', "£@[\\]^_`{|}~"),
    ('4', "£¾ĳ½|^_`¨ƒ¼´"),
    ('C', "#@ÄÖÅÜ_éäöåü"),
    ('R', "£à°ç§^_`éùè¨"),
    ('Q', "#àâçêî_ôéùèû"),
    ('K', "#§ÄÖÜ^_`äöüß"),
    ('Y', "£§°çé^_ùàòèì"),
    ('E', "#ÄÆØÅÜ_äæøåü"),
    ('Z', "£§¡Ñ¿^_`°ñç~"),
    ('H', "#ÉÄÖÅÜ_éäöåü"),
    ('=', "ùàéçêîèôäöüû"),
    ('%', "#@ÃÇÕ^_`ãçõ~"),
];

/// The four sets, which a saved cursor keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Charsets([Charset; 4]);

impl Default for Charsets {
    fn default() -> Self {
        Self([Charset::ASCII; 4])
    }
}

impl Charsets {
    /// The characters that begin the sequences that name a set.
    const PLACES: [char; 4] = ['(', ')', '*', '+'];

    /// Obeys `ESC place name`: puts the set `name` into `place`. Returns whether there is such a place; a set
    /// that is not known changes nothing.
    pub(super) fn designate(&mut self, place: char, name: char) -> bool {
        let Some(at) = Self::PLACES.iter().position(|known| *known == place) else { return false };
        let set = Charset::named(name);
        self.0[at] = set.unwrap_or(self.0[at]);
        true
    }

    pub(in super::super) const fn get(self, used: usize) -> Charset {
        self.0[used]
    }

    /// The sets that are not those of a reset terminal, each after the character of its place.
    pub(in super::super) fn special(self) -> impl Iterator<Item = (char, Charset)> {
        let sets = Self::PLACES.into_iter().zip(self.0);
        sets.filter(|(_, set)| *set != Charset::ASCII)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_replace_what_they_say_and_nothing_else() {
        let written = "#@[\\]^_`{|}~a";
        let cases = [
            ('B', written),
            ('A', "£@[\\]^_`{|}~a"),
            ('K', "#§ÄÖÜ^_`äöüßa"),
            ('f', "£à°ç§^_`éùè¨a"),
            ('=', "ùàéçêîèôäöüûa"),
            ('7', "#ÉÄÖÅÜ_éäöåüa"),
        ];
        for (name, shown) in cases {
            let set = Charset::named(name).unwrap();
            assert_eq!(written.chars().map(|c| set.map(c)).collect::<String>(), shown, "{name}");
        }
        assert_eq!(Charset::named('0').unwrap().map('q'), '─');
        assert_eq!(Charset::named('?'), None);
        for (name, characters) in NATIONAL {
            assert_eq!(characters.chars().count(), REPLACED.len(), "{name}");
        }
    }
}
