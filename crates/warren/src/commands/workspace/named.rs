//! Finds the session, project or team that is meant.

use std::collections::BTreeSet;

use anyhow::anyhow;
use client::{ClientError, Workspace};
use protocol::workspace::{Project, ProjectId, SessionInfo, SessionStatus, Team};

use super::Machines;
use crate::{commands::table::plain, exit::usage};

/// Something with an id that is named by the id, by its beginning, or by a name.
pub(crate) trait Nameable {
    /// The noun for the kind.
    const WHAT: &'static str;

    fn id(&self) -> String;

    fn name(&self) -> Option<&str>;

    /// The machine that it is on, if known.
    fn node(&self) -> Option<&str> {
        None
    }

    /// Whether it is alive. Of several with one name, the living one is meant.
    fn is_alive(&self) -> bool {
        true
    }
}

impl Nameable for SessionInfo {
    const WHAT: &'static str = "session";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn node(&self) -> Option<&str> {
        self.node_id.as_deref()
    }

    fn is_alive(&self) -> bool {
        self.status != SessionStatus::Exited
    }
}

impl Nameable for Project {
    const WHAT: &'static str = "project";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn node(&self) -> Option<&str> {
        self.node_id.as_deref()
    }
}

impl Nameable for Team {
    const WHAT: &'static str = "team";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// The session, project or team of this id, name, or beginning of an id.
///
/// # Errors
/// When nothing matches, or several do. If these are on different machines, the error names the machines.
pub(crate) async fn named<'a, T: Nameable>(
    workspace: &mut Workspace,
    all: &'a [T],
    meant: &str,
) -> anyhow::Result<&'a T> {
    let machines = match among(all, meant) {
        // The machines' names are a help: without them their ids are shown.
        Match::Several(_) => Machines::of(workspace).await.unwrap_or_default(),
        _ => Machines::default(),
    };
    named_on(all, meant, &machines)
}

/// As [`named`], with the names of the machines that are known already.
///
/// # Errors
/// As [`named`].
pub(crate) fn named_on<'a, T: Nameable>(
    all: &'a [T],
    meant: &str,
    machines: &Machines,
) -> anyhow::Result<&'a T> {
    match among(all, meant) {
        Match::One(one) => Ok(one),
        Match::None => {
            let words = format!("there is no {} {}", T::WHAT, plain(meant));
            Err(ClientError::NotFound { words }.into())
        }
        Match::Several(several) => Err(usage(ambiguous(meant, &several, machines))),
    }
}

/// The id of the project that is meant.
///
/// # Errors
/// As [`named`].
pub(crate) async fn project(workspace: &mut Workspace, meant: &str) -> anyhow::Result<ProjectId> {
    let projects = workspace.projects().await?;
    Ok(named(workspace, &projects, meant).await?.id)
}

enum Match<'a, T> {
    One(&'a T),
    None,
    Several(Vec<&'a T>),
}

fn among<'a, T: Nameable>(all: &'a [T], meant: &str) -> Match<'a, T> {
    let lower = meant.to_lowercase();
    let by_name: Vec<&T> = all.iter().filter(|it| it.name() == Some(meant)).collect();
    let alive: Vec<&T> = by_name.iter().copied().filter(|it| it.is_alive()).collect();
    let begins = |it: &&T| !lower.is_empty() && it.id().starts_with(&lower);
    let by_id: Vec<&T> = all.iter().filter(begins).collect();
    match (&alive[..], &by_name[..], &by_id[..]) {
        (_, _, [one]) if one.id() == lower => Match::One(one),
        ([one], ..) | ([], [one], _) | ([], [], [one]) => Match::One(one),
        ([], [], []) => Match::None,
        ([], [], _) => Match::Several(by_id),
        ([], ..) => Match::Several(by_name),
        _ => Match::Several(alive),
    }
}

fn ambiguous<T: Nameable>(meant: &str, several: &[&T], machines: &Machines) -> anyhow::Error {
    let nodes: BTreeSet<Option<&str>> = several.iter().map(|it| it.node()).collect();
    let one = |it: &&T| match nodes.len() {
        0 | 1 => it.id(),
        _ => format!("{} on {}", it.id(), machines.name(it.node())),
    };
    let all: Vec<String> = several.iter().map(one).collect();
    anyhow!("{} may be any of {}: give an id", plain(meant), all.join(", "))
}

/// The first digits of an id, which tell it from most others.
pub(crate) fn short<T: ToString + Copy>(id: T) -> String {
    id.to_string().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its id, which begins with its machine's, its name, and whether it is alive.
    struct It(&'static str, Option<&'static str>, bool);

    impl Nameable for It {
        const WHAT: &'static str = "session";

        fn id(&self) -> String {
            self.0.to_owned()
        }

        fn name(&self) -> Option<&str> {
            self.1
        }

        fn node(&self) -> Option<&str> {
            self.0.get(..1)
        }

        fn is_alive(&self) -> bool {
            self.2
        }
    }

    #[test]
    fn one_is_meant_by_id_name_or_the_beginning_of_an_id() {
        let all = [
            It("abcd-1", Some("dev"), true),
            It("abce-2", None, true),
            It("ff00-3", Some("build"), false),
            It("ff01-4", Some("build"), true),
            It("1234-5", Some("abce"), true),
            It("1235-6", Some("twice"), true),
            It("1236-7", Some("twice"), true),
            It("9999-8", Some("old"), false),
            It("7770-9", Some("both"), true),
            It("8880-a", Some("both"), true),
        ];
        let meant = |text: &str| match among(&all, text) {
            Match::One(it) => it.0.to_owned(),
            Match::None => "nothing".to_owned(),
            Match::Several(several) => {
                format!("{:#}", ambiguous(text, &several, &Machines::default()))
            }
        };
        assert_eq!(meant("ABCD-1"), "abcd-1");
        assert_eq!(meant("dev"), "abcd-1");
        assert_eq!(meant("abce"), "1234-5", "a name before a beginning");
        assert_eq!(meant("abce-2"), "abce-2");
        assert_eq!(meant("build"), "ff01-4", "the one that is alive");
        assert_eq!(meant("old"), "9999-8", "the only one");
        assert_eq!(meant("abc"), "abc may be any of abcd-1, abce-2: give an id");
        assert!(meant("twice").contains("1235-6, 1236-7"), "{}", meant("twice"));
        let both = meant("both");
        assert!(both.contains("7770-9 on 7, 8880-a on 8"), "of two machines: {both}");
        for unknown in ["", "nobody", "abcd-12"] {
            assert_eq!(meant(unknown), "nothing", "{unknown}");
        }
    }

    #[test]
    fn ids_are_shown_in_short() {
        assert_eq!(short("550e8400-e29b-41d4"), "550e8400");
    }
}
