//! Numbered lines: what terminals print, and whether it comes whole.

use testkit::Random;

/// A script that prints numbered lines for ever, a burst at a time. The mark is in its
/// processes. What the shell says when it is killed is no line.
pub(crate) fn script(random: &mut Random, mark: &str) -> String {
    let (burst, pause) = match random.below(4) {
        0 => (1, "0.5"),
        1 => (20, "0.05"),
        2 => (200, "0.1"),
        _ => (3_000, "0.3"),
    };
    format!(
        "exec 2>/dev/null; sleep {mark} & (setsid sleep {mark} >/dev/null 2>&1 &) ; i=0; while :; do j=0; \
         while [ $j -lt {burst} ]; do echo \"line $i of many\"; i=$((i+1)); j=$((j+1)); done; \
         sleep {pause}; done"
    )
}

/// Whether each line follows the one before.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of the line that has not ended.
    rest: String,
    last: Option<u64>,
    /// Whether the rest is the end of a line whose beginning is unknown.
    is_torn: bool,
    pub(crate) count: u64,
}

impl Lines {
    /// From a snapshot on, in the middle of a line.
    pub(crate) fn begin(&mut self) {
        (self.rest, self.last, self.is_torn) = (String::new(), None, true);
    }

    /// More text.
    ///
    /// # Errors
    /// When a line does not follow the one before.
    pub(crate) fn take(&mut self, text: &str) -> Result<(), String> {
        self.rest.push_str(text);
        while let Some(end) = self.rest.find("\r\n") {
            let line: String = self.rest.drain(..end + 2).collect();
            if !std::mem::take(&mut self.is_torn) {
                self.line(line.trim_end())?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let number = line.strip_prefix("line ").and_then(|rest| rest.strip_suffix(" of many"));
        let number: Option<u64> = number.and_then(|number| number.parse().ok());
        let follows = number.is_some_and(|number| self.last.is_none_or(|last| number == last + 1));
        if !follows {
            return Err(format!("{line:?} came after line {:?}", self.last));
        }
        (self.last, self.count) = (number, self.count + 1);
        Ok(())
    }
}
