//! A project, and a path in it.

use std::{fmt, str::FromStr};

/// `PROJECT:PATH`. Without a path, the project's own directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectPath {
    /// The project, in the user's words.
    pub(crate) project: String,
    /// The path, from the project's directory on.
    pub(crate) path: String,
}

impl ProjectPath {
    /// The last part of the path.
    pub(super) fn file_name(&self) -> Option<&str> {
        self.path.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// The directory of the path, and the name in it.
    pub(super) fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or(("", &self.path))
    }

    /// The path with `name` after it, if it names a directory.
    pub(super) fn join(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}/{name}"),
        }
    }
}

impl FromStr for ProjectPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (project, path) = text.split_once(':').unwrap_or((text, ""));
        if project.is_empty() {
            return Err("expected PROJECT:PATH".to_owned());
        }
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let path = if path == "." { "" } else { path };
        Ok(Self { project: project.to_owned(), path: path.to_owned() })
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.project, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_a_project() {
        let cases = [
            ("site", "site", ""),
            ("site:", "site", ""),
            ("site:.", "site", ""),
            ("site:src/", "site", "src"),
            ("site:./a:b", "site", "a:b"),
            ("site:../up", "site", "../up"),
        ];
        for (text, project, path) in cases {
            let read: ProjectPath = text.parse().unwrap();
            assert_eq!((read.project.as_str(), read.path.as_str()), (project, path), "{text}");
        }
        assert!(":a".parse::<ProjectPath>().is_err());
        let read: ProjectPath = "p:a/b".parse().unwrap();
        assert_eq!(
            (read.file_name(), read.split(), read.join("c")),
            (Some("b"), ("a", "b"), "a/b/c".to_owned())
        );
        let root: ProjectPath = "p".parse().unwrap();
        assert_eq!((root.file_name(), root.join("c")), (None, "c".to_owned()));
    }
}
