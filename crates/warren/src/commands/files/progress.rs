//! The progress of a file, as a bar on a terminal.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A file below this size needs no bar, in bytes: it is there before the bar is read.
const SMALL: u64 = 1024 * 1024;

/// A bar on standard error, if that is a terminal and the file is not small.
pub(super) fn bar(name: &str, total: u64) -> ProgressBar {
    if total < SMALL || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.set_message(base::plain::line(name));
    // The template is right, as a test shows; a bar without it is a bar, too.
    match style() {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    let template = "[{bar:24}] {percent:>3} % {binary_bytes} of {binary_total_bytes}, \
        {binary_bytes_per_sec}, {eta} left {wide_msg}";
    Ok(ProgressStyle::with_template(template)?.progress_chars("=> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_its_style() {
        assert!(style().is_ok());
        assert!(bar("a", 1).is_hidden());
    }
}
