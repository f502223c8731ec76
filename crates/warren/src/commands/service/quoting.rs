//! Words in the syntax of systemd, in units and in files of variables (systemd.syntax, systemd.service, systemd.exec).

/// A command line of a unit. Specifiers (`%`), variables (`$`), quotes and blanks stand for themselves.
pub(super) fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted_word(word)).collect::<Vec<_>>().join(" ")
}

/// A path of a unit's setting, in which specifiers stand for themselves.
pub(super) fn path(path: &str) -> String {
    path.replace('%', "%%")
}

/// The words of a command line that [`command_line`] wrote; `None` if it is not closed.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut is_open) = (Vec::new(), None::<String>, false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                is_open = !is_open;
                word.get_or_insert_default();
            }
            '\\' if is_open => word.get_or_insert_default().push(rest.next()?),
            '%' | '$' => {
                rest.next_if_eq(&c);
                word.get_or_insert_default().push(c);
            }
            ' ' if !is_open => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!is_open).then_some(words)
}

fn quoted_word(word: &str) -> String {
    let word = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%$[]*".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { quoted(&word) }
}

/// A text in double quotes, as units and files of variables read them.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The text of a value that [`quoted`] wrote, or that stands there without quotes.
pub(super) fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let Some(inner) = inner else { return value.to_owned() };
    let mut text = String::new();
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        text.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_words_stay_as_they_are_and_others_are_quoted() {
        let all = [
            "/usr/bin/warren",
            "serve",
            "--log",
            "info,wire=debug",
            "a b",
            "50%",
            "$x",
            "",
            "\"\\",
        ];
        let line = command_line(&all.map(str::to_owned));
        let expected = r#"/usr/bin/warren serve --log info,wire=debug "a b" 50%% $$x "" "\"\\""#;
        assert_eq!(line, expected);
    }

    #[test]
    fn a_line_that_is_not_closed_has_no_words() {
        assert_eq!(words("a \"b"), None);
        assert_eq!(words("a \"b\\"), None);
        assert_eq!(words("").unwrap(), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn words_are_read_back_as_they_were(all in proptest::collection::vec("[^\n\r\u{0}]{0,12}", 0..6)) {
            prop_assert_eq!(words(&command_line(&all)), Some(all));
        }
    }
}
