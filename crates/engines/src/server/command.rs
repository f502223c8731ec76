//! The command of a server, from its template (pure).

use crate::model::EngineModel;

/// The address that servers listen on.
const HOST: &str = "127.0.0.1";

/// The program and its arguments. An argument whose placeholder has no value is left out, with the option
/// before it. Braces that are not a placeholder stay as they are.
pub(super) fn expand(model: &EngineModel, port: u16) -> Vec<String> {
    let template = model.program.command.iter().chain(&model.flags);
    let mut words: Vec<String> = Vec::new();
    for word in template {
        match filled(word, model, port) {
            Some(word) => words.push(word),
            // `> 1`, so that the program itself is never removed.
            None if words.len() > 1 && words.last().is_some_and(|last| is_option(last)) => {
                words.pop();
            }
            None => {}
        }
    }
    words
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=')
}

/// A word with its placeholders filled in; `None` if a value is missing. Braces within values are
/// not expanded.
fn filled(word: &str, model: &EngineModel, port: u16) -> Option<String> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let name = rest.find('}').map(|close| &rest[1..close]);
        match name.and_then(|name| Some((name, value(name, model, port)?))) {
            Some((name, value)) => {
                filled.push_str(&value?);
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    Some(filled)
}

/// `Some` for a placeholder, with its value if it has one; `None` if there is no placeholder of
/// this name.
fn value(name: &str, model: &EngineModel, port: u16) -> Option<Option<String>> {
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    Some(match name {
        "model" => Some(path(&model.file)),
        "port" => Some(port.to_string()),
        "host" => Some(HOST.to_owned()),
        "name" => Some(model.name.clone()),
        "context" => model.context.map(|tokens| tokens.to_string()),
        "mmproj" => model.mmproj.as_deref().map(path),
        "parallel" => model.parallel.map(|number| number.to_string()),
        "threads" => model.threads.map(|number| number.to_string()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{model::Program, testing};

    fn expanded(command: &[&str], change: impl FnOnce(&mut EngineModel)) -> Vec<String> {
        let mut model = testing::model("qwen");
        let command = command.iter().map(|&word| word.to_owned()).collect();
        model.program = Arc::new(Program { command, ..(*model.program).clone() });
        change(&mut model);
        expand(&model, 4000)
    }

    #[test]
    fn placeholders_get_their_values() {
        let command = ["serve", "--model={model}", "-p", "{port}", "http://{host}:{port}/{name}"];
        let words = expanded(&command, |model| {
            model.flags = vec!["-c".into(), "{context}".into(), "x".into()];
        });
        let all =
            ["serve", "--model=/models/qwen.gguf", "-p", "4000", "http://127.0.0.1:4000/qwen", "x"];
        assert_eq!(words, all);
    }

    #[test]
    fn an_option_without_a_value_is_left_out() {
        let command = [
            "serve",
            "--ctx-size",
            "{context}",
            "--mmproj={mmproj}",
            "-np",
            "{parallel}",
            "{threads}",
        ];
        assert_eq!(expanded(&command, |_| {}), ["serve"]);
        let words = expanded(&command, |model| {
            model.context = Some(4096);
            model.mmproj = Some("/m/p.gguf".into());
        });
        assert_eq!(words, ["serve", "--ctx-size", "4096", "--mmproj=/m/p.gguf"]);
        assert_eq!(expanded(&["{context}", "{threads}"], |_| {}), Vec::<String>::new());
        assert_eq!(expanded(&["-x", "{threads}"], |_| {}), ["-x"]);
    }

    #[test]
    fn values_and_foreign_braces_stay_as_they_are() {
        let command = ["serve", r#"{"a":{port}}"#, "{other}", "{", "{model"];
        let words = expanded(&command, |model| model.file = "/m/{port}; rm $HOME.gguf".into());
        assert_eq!(words, ["serve", r#"{"a":4000}"#, "{other}", "{", "{model"]);
        let words = expanded(&["serve", "{model}"], |model| model.file = "/m/{port} x".into());
        assert_eq!(words, ["serve", "/m/{port} x"]);
    }
}
