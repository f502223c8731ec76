//! The tool uses that have begun: some programs report the beginning of a use more than once, or only
//! with its end.

use serde::{Deserialize, Serialize};

/// The most tool uses that are remembered. A program may never report the end of a tool use.
const MOST: usize = 256;

/// The ids of the tool uses that have begun, newest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StartedTools(Vec<String>);

impl StartedTools {
    /// Notes that a tool use begins. Returns whether that is new.
    pub(super) fn begin(&mut self, id: &str) -> bool {
        if self.0.iter().any(|started| started == id) {
            return false;
        }
        self.0.truncate(MOST - 1);
        self.0.insert(0, id.to_owned());
        true
    }

    pub(super) fn end(&mut self, id: &str) {
        self.0.retain(|started| started != id);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_use_begins_once_and_the_oldest_are_forgotten() {
        let mut started = StartedTools::default();
        for id in 0..=MOST {
            assert!(started.begin(&id.to_string()));
        }
        assert_eq!(started.0.len(), MOST);
        assert!(!started.begin("1") && started.begin("0"));
        started.end("0");
        assert!(started.begin("0"));
    }
}
