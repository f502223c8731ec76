//! Rules about what people read: every page is in the book, and every link leads somewhere.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::Result;

use crate::workspace::Workspace;

/// Where the book's pages lie.
const BOOK: &str = "docs/src";
/// The files that a project that people want to join has at its root.
const ROOT_FILES: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "deny.toml",
];

/// Names every page that is missing, left out of the book, or links to nothing.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let missing = ROOT_FILES.iter().filter(|name| !workspace.root().join(name).is_file());
    let mut findings: Vec<_> = missing.map(|name| format!("{name} is missing")).collect();
    findings.extend(unlisted(workspace)?);
    for path in written(workspace)? {
        findings.extend(dead_links(workspace, &path, &workspace.read(&path)?));
    }
    Ok(findings)
}

fn written(workspace: &Workspace) -> Result<Vec<String>> {
    let mut pages = workspace.files(&["docs", "crates", "benches", "deploy", "fuzz"], ".md")?;
    let at_root = ROOT_FILES.iter().filter(|name| name.ends_with(".md"));
    pages.extend(
        at_root.filter(|name| workspace.root().join(name).is_file()).map(|name| (*name).to_owned()),
    );
    Ok(pages)
}

/// Pages of the book that its summary does not list.
fn unlisted(workspace: &Workspace) -> Result<Vec<String>> {
    let summary = workspace.read(&format!("{BOOK}/SUMMARY.md"))?;
    let listed = links(&summary);
    let pages = workspace.files(&[BOOK], ".md")?;
    let left_out = pages.iter().filter(|path| {
        let page = path.trim_start_matches(BOOK).trim_start_matches('/');
        page != "SUMMARY.md" && !listed.contains(&page)
    });
    Ok(left_out.map(|path| format!("{path}: SUMMARY.md does not list it")).collect())
}

fn dead_links(workspace: &Workspace, page: &str, text: &str) -> Vec<String> {
    let local = links(text).into_iter().filter(|link| !link.contains("://"));
    local
        .filter_map(|link| {
            let fault = fault(workspace, page, link)?;
            Some(format!("{page}: links to {link}, {fault}"))
        })
        .collect()
}

/// The fault of a link: its file is not there, or the page has no such heading.
fn fault(workspace: &Workspace, page: &str, link: &str) -> Option<&'static str> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let directory = Path::new(page).parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { page.into() } else { normal(&directory.join(path)) };
    let target = workspace.root().join(target);
    if !target.exists() {
        return Some("which is not there");
    }
    if heading.is_empty() {
        return None;
    }
    // What is no text has no headings.
    let text = fs::read_to_string(target).unwrap_or_default();
    let is_there = headings(&text).any(|known| known == heading);
    (!is_there).then_some("where there is no such heading")
}

/// The headings of a page, as links name them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept =
            words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    })
}

/// The targets of `[text](target)`, outside of blocks of code.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .collect()
}

/// A path without its `..`, so that a directory it passes through need not exist.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut so_far, part| {
        match part {
            Component::ParentDir => {
                so_far.pop();
            }
            other => so_far.push(other),
        }
        so_far
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "a [b](c.md) and [d](e.md#f)\n```\n[no](link.md)\n```\n[g](https://h)";
        assert_eq!(links(text), ["c.md", "e.md#f", "https://h"]);
    }

    #[test]
    fn missing_unlisted_and_dead_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let book = directory.path().join(BOOK);
        fs::create_dir_all(&book).unwrap();
        fs::write(book.join("SUMMARY.md"), "- [A](a.md)\n").unwrap();
        let links =
            "[b](../nowhere.md) [c](#here) [d](b.md) [e](b.md#and-there-it-is) [f](b.md#no)";
        fs::write(book.join("a.md"), format!("## Here\n\n{links}\n")).unwrap();
        fs::write(book.join("b.md"), "not in the summary\n\n# And `there`: it is\n").unwrap();
        let findings = check(&Workspace::at(directory.path())).unwrap();
        assert_eq!(findings.len(), ROOT_FILES.len() + 3, "{findings:?}");
        assert!(findings.contains(&"docs/src/b.md: SUMMARY.md does not list it".to_owned()));
        let dead = "docs/src/a.md: links to ../nowhere.md, which is not there".to_owned();
        assert!(findings.contains(&dead));
        let lost = "docs/src/a.md: links to b.md#no, where there is no such heading".to_owned();
        assert!(findings.contains(&lost));
    }
}
