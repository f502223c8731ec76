//! Errors as text.

use std::error::Error;

/// An error and all that caused it, in one line. A cause that the text tells already, as some
/// libraries' errors do, is not said twice.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn each_cause_is_told_once() {
        let full = || io::Error::other("disk full");
        assert_eq!(chain(&Outer("not written", full())), "not written: disk full");
        assert_eq!(chain(&Outer("not written (disk full)", full())), "not written (disk full)");
    }
}
