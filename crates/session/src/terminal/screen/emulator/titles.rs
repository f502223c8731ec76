//! The window's title, and the titles that programs have saved to restore them later.

/// The most characters of a title.
const LONGEST: usize = 256;
/// The most saved titles; beyond this the oldest is dropped.
const DEEPEST: usize = 10;

/// The present title, and a stack of saved ones. A title is never an empty text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct Titles {
    current: Option<String>,
    saved: Vec<Option<String>>,
}

impl Titles {
    pub(in super::super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// The saved titles, the latest last. `None` stands for no title.
    pub(in super::super) fn saved(&self) -> &[Option<String>] {
        &self.saved
    }

    pub(super) fn set(&mut self, title: Option<&str>) {
        let printable: String =
            title.unwrap_or_default().chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        let title = printable.trim();
        self.current = (!title.is_empty()).then(|| title.to_owned());
    }

    pub(super) fn push(&mut self) {
        if self.saved.len() == DEEPEST {
            self.saved.remove(0);
        }
        self.saved.push(self.current.clone());
    }

    pub(super) fn pop(&mut self) {
        if let Some(title) = self.saved.pop() {
            self.current = title;
        }
    }
}
