//! Which session, project or team is meant.

use anyhow::anyhow;
use client::ClientError;
use protocol::workspace::{Project, SessionInfo, SessionStatus, Team};

use crate::{commands::table::plain, exit::usage};

/// Something that has an id, and is meant by that, by how it begins, or by a name.
pub(crate) trait Named {
    /// What it is called.
    const WHAT: &'static str;

    fn id(&self) -> String;

    fn name(&self) -> Option<&str>;

    /// Of several of a name, one that is alive is meant.
    fn is_alive(&self) -> bool {
        true
    }
}

impl Named for SessionInfo {
    const WHAT: &'static str = "session";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn is_alive(&self) -> bool {
        self.status != SessionStatus::Exited
    }
}

impl Named for Project {
    const WHAT: &'static str = "project";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Named for Team {
    const WHAT: &'static str = "team";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// The one that is meant: by its id, its name, or the beginning of its id.
///
/// # Errors
/// When it is none of them, or several.
pub(crate) fn named<'a, T: Named>(all: &'a [T], meant: &str) -> anyhow::Result<&'a T> {
    let lower = meant.to_lowercase();
    let by_name: Vec<&T> = all.iter().filter(|it| it.name() == Some(meant)).collect();
    let alive: Vec<&T> = by_name.iter().copied().filter(|it| it.is_alive()).collect();
    let begins = |it: &&T| !lower.is_empty() && it.id().starts_with(&lower);
    let by_id: Vec<&T> = all.iter().filter(begins).collect();
    match (&alive[..], &by_name[..], &by_id[..]) {
        (_, _, [one]) if one.id() == lower => Ok(one),
        ([one], ..) | ([], [one], _) | ([], [], [one]) => Ok(one),
        ([], [], []) => {
            let words = format!("there is no {} {}", T::WHAT, plain(meant));
            Err(ClientError::NotFound { words }.into())
        }
        ([], [], several) | ([], several, _) | (several, ..) => {
            let ids: Vec<String> = several.iter().map(|it| it.id()).collect();
            Err(usage(anyhow!("{} may be any of {}: give an id", plain(meant), ids.join(", "))))
        }
    }
}

/// The first digits of an id, which tell it from most others.
pub(crate) fn short<T: ToString + Copy>(id: T) -> String {
    id.to_string().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct It(&'static str, Option<&'static str>, bool);

    impl Named for It {
        const WHAT: &'static str = "session";

        fn id(&self) -> String {
            self.0.to_owned()
        }

        fn name(&self) -> Option<&str> {
            self.1
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
        ];
        let meant = |text: &str| named(&all, text).map(|it| it.0);
        assert_eq!(meant("ABCD-1").unwrap(), "abcd-1");
        assert_eq!(meant("dev").unwrap(), "abcd-1");
        assert_eq!(meant("abce").unwrap(), "1234-5", "a name before a beginning");
        assert_eq!(meant("abce-2").unwrap(), "abce-2");
        assert_eq!(meant("build").unwrap(), "ff01-4", "the one that is alive");
        assert_eq!(meant("old").unwrap(), "9999-8", "the only one");
        let several = format!("{:#}", meant("abc").unwrap_err());
        assert!(several.contains("abcd-1, abce-2"), "{several}");
        assert!(format!("{:#}", meant("twice").unwrap_err()).contains("1236-7"));
        for unknown in ["", "nobody", "abcd-12"] {
            let error = meant(unknown).unwrap_err();
            assert!(error.downcast_ref::<ClientError>().unwrap().is_not_found(), "{unknown}");
        }
    }

    #[test]
    fn ids_are_shown_in_short() {
        assert_eq!(short("550e8400-e29b-41d4"), "550e8400");
    }
}
