//! The names on the pages about the code exist: files, types, functions, modules.
//!
//! Words in back quotes are names:
//!
//! - with a slash inside, or with the ending of a file of ours: a path from the root or from `crates`.
//!   `{a,b}` stands for several names, a part in capitals or `*` for any
//! - `a::b::C`: a crate or a type, and what is defined in it
//! - `Type`, `function()`: defined in some crate
//! - `with_underscore`: a word of the code
//!
//! Everything else is a word of a command, of a protocol or of a file that users have. In blocks of code, which are
//! drawings here, only words with `::` are names.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::workspace::Workspace;

/// The words of Rust that a name follows where it is defined. Types that a macro makes stand behind `impl`.
const KEYWORDS: [&str; 11] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "mod",
    "const",
    "static",
    "union",
    "macro_rules",
    "impl",
];

/// Names every name of the pages that leads nowhere.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let sources = Sources::read(workspace)?;
    let mut pages = workspace.files(&["docs/parts"], ".md")?;
    pages.extend(["ARCHITECTURE.md".to_owned(), "docs/decisions.md".to_owned()]);
    let mut findings = Vec::new();
    for page in pages.iter().filter(|page| workspace.root().join(page).is_file()) {
        let text = workspace.read(page)?;
        let lost = names(&text).into_iter().filter(|name| !exists(name, workspace, &sources));
        findings.extend(lost.map(|name| format!("{page} names `{name}`, which is not there")));
    }
    Ok(findings)
}

/// All that stands in back quotes, and the paths of symbols in blocks of code, once each.
fn names(text: &str) -> BTreeSet<&str> {
    let (prose, blocks) = (text.split("```").step_by(2), text.split("```").skip(1).step_by(2));
    let quoted = prose.flat_map(|prose| prose.split('`').skip(1).step_by(2));
    let words = blocks.flat_map(|block| block.split(|letter| !of_word(letter) && letter != ':'));
    quoted.chain(words.filter(|word| word.contains("::"))).collect()
}

fn exists(name: &str, workspace: &Workspace, sources: &Sources) -> bool {
    if is_path(name) {
        return paths(name).iter().all(|path| is_there(workspace, path));
    }
    let (name, is_function) = name.split_once('(').map_or((name, false), |(name, _)| (name, true));
    let parts: Vec<&str> = name.split("::").collect();
    match parts.as_slice() {
        parts if !parts.iter().all(|part| is_word(part)) => true,
        [word] if is_function || is_type(word) => sources.defined.contains_key(*word),
        [word] if word.contains('_') => sources.have_word(word),
        [_] => true,
        parts => sources.lead_to(parts),
    }
}

fn is_path(name: &str) -> bool {
    let of_path = |letter: char| letter.is_ascii_alphanumeric() || "_-./{},*".contains(letter);
    let ends = name.ends_with(".rs") || name.ends_with(".md");
    name.chars().all(of_path) && (ends || name.find('/').is_some_and(|at| at > 0))
}

/// The paths for which a name with braces stands.
pub(super) fn paths(name: &str) -> Vec<String> {
    let braces =
        name.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choices, after))) = braces else { return vec![name.to_owned()] };
    choices.split(',').flat_map(|choice| paths(&format!("{before}{choice}{after}"))).collect()
}

/// Whether there is such a file or directory, as far as the path names one.
fn is_there(workspace: &Workspace, path: &str) -> bool {
    let is_any = |part: &str| part == "*" || part.chars().all(|letter| letter.is_ascii_uppercase());
    let known: Vec<&str> = path.split('/').take_while(|part| !is_any(part)).collect();
    let known = known.join("/");
    ["", "crates"].iter().any(|base| workspace.root().join(base).join(&known).exists())
}

fn is_word(part: &str) -> bool {
    !part.is_empty() && part.chars().all(of_word)
}

fn of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn is_type(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.contains(|letter: char| letter.is_ascii_lowercase())
}

/// The Rust files of all crates.
struct Sources {
    /// Their texts by their paths.
    texts: BTreeMap<String, String>,
    /// The files that define a name.
    defined: BTreeMap<String, BTreeSet<String>>,
}

impl Sources {
    fn read(workspace: &Workspace) -> Result<Self> {
        let mut sources = Self { texts: BTreeMap::new(), defined: BTreeMap::new() };
        for path in workspace.files(&["crates"], ".rs")? {
            sources.add(path.clone(), workspace.read(&path)?);
        }
        Ok(sources)
    }

    fn add(&mut self, path: String, text: String) {
        for name in definitions(&text) {
            self.defined.entry(name.to_owned()).or_default().insert(path.clone());
        }
        self.texts.insert(path, text);
    }

    /// Whether a file or a line of the code has this word.
    fn have_word(&self, word: &str) -> bool {
        let mut texts = self.texts.iter();
        texts.any(|(path, text)| path.split('/').any(|part| part == word) || has_word(text, word))
    }

    /// Whether the parts lead from a crate or a type to what is defined there.
    fn lead_to(&self, parts: &[&str]) -> bool {
        let crates = parts.first().map(|first| self.crates_of(first)).unwrap_or_default();
        crates.iter().any(|house| parts.windows(2).all(|pair| self.leads(house, pair[0], pair[1])))
    }

    /// Whether a crate defines a name, or has it in a file that defines another one, as an enum has its variants.
    fn leads(&self, house: &str, from: &str, to: &str) -> bool {
        self.files_of(to, house).next().is_some()
            || self.files_of(from, house).any(|path| has_word(&self.texts[path], to))
    }

    /// The crate of this name, or the crates that define this type.
    fn crates_of(&self, name: &str) -> BTreeSet<String> {
        let house = format!("crates/{name}/");
        if self.texts.keys().any(|path| path.starts_with(&house)) {
            return BTreeSet::from([house]);
        }
        let files = self.defined.get(name).filter(|_| is_type(name)).into_iter().flatten();
        files
            .filter_map(|path| path.match_indices('/').nth(1).map(|(at, _)| path[..=at].to_owned()))
            .collect()
    }

    fn files_of(&self, name: &str, house: &str) -> impl Iterator<Item = &String> {
        let files = self.defined.get(name).into_iter().flatten();
        files.filter(move |path| path.starts_with(house))
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.contains(word) && text.split(|letter| !of_word(letter)).any(|other| other == word)
}

/// The definitions in the lines of a file.
fn definitions(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| {
        let words: Vec<&str> =
            line.split(|letter| !of_word(letter)).filter(|word| !word.is_empty()).collect();
        let pairs = words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0]));
        pairs.map(|pair| pair[1]).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A project with one crate and a page that says this.
    fn found(page: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("crates/a/src");
        fs::create_dir_all(&source).unwrap();
        let code = "//! A.\n\npub enum Output {\n    Assign,\n}\n\n// fn not_there() {}\nfn poll_output() {}\n";
        fs::write(source.join("lib.rs"), format!("{code}mod b;\n")).unwrap();
        fs::write(source.join("b.rs"), "//! B.\n\nconst LIMIT_OF_B: u8 = 1;\n").unwrap();
        fs::write(directory.path().join("ARCHITECTURE.md"), page).unwrap();
        check(&Workspace::at(directory.path())).unwrap()
    }

    #[test]
    fn what_exists_is_no_finding() {
        let paths = "`crates/a/src/lib.rs` `a/src/` `a/src/{lib,b}.rs` `a/src/NAME/mod.rs` `ARCHITECTURE.md`";
        let symbols = "`a::b` `a::Output` `a::Output::Assign` `Output::Assign` `a::b::LIMIT_OF_B`";
        let words = "`Output` `poll_output()` `poll_output(now)` `LIMIT_OF_B`";
        let found = found(&format!("{paths} {symbols} {words}"));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for name in [
            "a/src/c.rs",
            "a/src/{lib,c}.rs",
            "c/src/NAME/mod.rs",
            "lib.rs",
            "a::c",
            "b::Output",
            "a::Output::Missing",
            "Missing",
            "Missing::Assign",
            "missing()",
            "not_there()",
            "missing_word",
        ] {
            let expected = [format!("ARCHITECTURE.md names `{name}`, which is not there")];
            assert_eq!(found(&format!("See `a::b` and `{name}`.")), expected);
        }
        let expected = ["ARCHITECTURE.md names `a::c`, which is not there"];
        assert_eq!(found("```\na::b ─► a::c\n```\n"), expected);
    }

    #[test]
    fn other_words_and_blocks_of_code_are_no_names() {
        let words =
            "`warren serve` `--json` `/api/chat` `local-only` `x-warren-route` `stream` `GET` `*`";
        let found = found(&format!("{words}\n```\nMissing missing() ─► a::Output::Assign\n```\n"));
        assert!(found.is_empty(), "{found:?}");
    }
}
