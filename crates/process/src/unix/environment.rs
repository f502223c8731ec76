//! The part of the daemon's environment that a child gets. It is an allow-list, so that new secrets
//! stay inside.

use std::ffi::{OsStr, OsString};

use crate::unix::user::User;

/// The variables that are passed on unchanged, beside `LC_*`.
const PASSED_ON: [&str; 3] = ["LANG", "TZ", "PATH"];
/// The variables that name the characters of a locale, the strongest first.
const CHARACTERS: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The whole environment of a process of `user`: the daemon's locale (UTF-8 if it has none), time zone
/// and `PATH`; the user's `HOME`, `USER`, `LOGNAME` and `SHELL`; the `TERM` of our terminals; and then `extra`,
/// which overrides the others. Nothing else of the daemon's environment is passed on, above all no
/// secret.
#[must_use]
pub fn clean_environment(extra: &[(String, String)], user: &User) -> Vec<(OsString, OsString)> {
    clean(std::env::vars_os(), extra, user)
}

fn clean(
    own: impl Iterator<Item = (OsString, OsString)>,
    extra: &[(String, String)],
    user: &User,
) -> Vec<(OsString, OsString)> {
    let own: Vec<_> = own.collect();
    let mut all = vec![("PATH".into(), DEFAULT_PATH.into())];
    set_all(&mut all, of_user(user));
    set_all(&mut all, own.into_iter().filter(|(name, _)| passes(name, user)));
    set_all(&mut all, [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]);
    set_all(&mut all, extra.iter().map(|(name, value)| (name, value)));
    if !names_characters(&all) {
        // Our terminals are UTF-8, and without a locale programs would take it for ASCII.
        set_all(&mut all, [("LANG", "C.UTF-8")]);
    }
    all
}

/// Whether an environment says which characters programs write.
fn names_characters(all: &[(OsString, OsString)]) -> bool {
    all.iter().any(|(name, value)| {
        !value.is_empty() && CHARACTERS.iter().any(|known| name.to_str() == Some(known))
    })
}

fn of_user(user: &User) -> [(OsString, OsString); 4] {
    let name = || OsString::from(&user.name);
    [
        ("HOME".into(), user.home.clone().into()),
        ("SHELL".into(), user.shell.clone().into()),
        ("USER".into(), name()),
        ("LOGNAME".into(), name()),
    ]
}

/// Whether a variable of the daemon is passed on. For the daemon's own user `HOME` and `SHELL` are,
/// since the daemon may have been started with other values than the user database has.
fn passes(name: &OsStr, user: &User) -> bool {
    let Some(name) = name.to_str() else { return false };
    let own = ["HOME", "SHELL"].contains(&name) && user.is_current();
    own || PASSED_ON.contains(&name) || name.starts_with("LC_")
}

fn set_all<N: Into<OsString>, V: Into<OsString>>(
    all: &mut Vec<(OsString, OsString)>,
    with: impl IntoIterator<Item = (N, V)>,
) {
    for (name, value) in with {
        let (name, value) = (name.into(), value.into());
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(own: &[(&str, &str)], extra: &[(&str, &str)], user: &User) -> Vec<String> {
        let own = own.iter().map(|(name, value)| (name.into(), value.into()));
        let extra: Vec<_> =
            extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let all = clean(own, &extra, user).into_iter();
        let mut all: Vec<_> =
            all.map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        all.sort();
        all
    }

    fn other() -> User {
        User {
            name: "alice".into(),
            uid: u32::MAX - 7,
            gid: 1,
            groups: vec![1],
            home: "/home/alice".into(),
            shell: "/bin/sh".into(),
        }
    }

    #[test]
    fn only_allowed_variables_are_passed_on() {
        let own = [
            ("WARREN_ADMIN_TOKEN", "secret"),
            ("LD_PRELOAD", "/evil.so"),
            ("CLAUDECODE", "1"),
            ("TMUX", "/tmp/tmux"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("OPENAI_API_KEY", "secret"),
            ("TERM", "dumb"),
            ("HOME", "/root"),
            ("LANG", "de_DE.UTF-8"),
            ("LC_TIME", "C"),
            ("TZ", "UTC"),
            ("PATH", "/opt/bin"),
        ];
        assert_eq!(
            cleaned(&own, &[], &other()),
            [
                "COLORTERM=truecolor",
                "HOME=/home/alice",
                "LANG=de_DE.UTF-8",
                "LC_TIME=C",
                "LOGNAME=alice",
                "PATH=/opt/bin",
                "SHELL=/bin/sh",
                "TERM=xterm-256color",
                "TZ=UTC",
                "USER=alice",
            ]
        );
    }

    #[test]
    fn where_no_locale_is_set_the_characters_are_utf8_and_a_locale_that_is_set_stays() {
        let lang = |own: &[(&str, &str)], extra: &[(&str, &str)]| {
            let all = cleaned(own, extra, &other());
            all.into_iter().find(|variable| variable.starts_with("LANG="))
        };
        assert_eq!(lang(&[], &[]).as_deref(), Some("LANG=C.UTF-8"));
        assert_eq!(lang(&[("LANG", ""), ("LC_TIME", "C")], &[]).as_deref(), Some("LANG=C.UTF-8"));
        for own in [("LANG", "C"), ("LC_ALL", "POSIX"), ("LC_CTYPE", "de_DE.ISO-8859-1")] {
            assert_ne!(lang(&[own], &[]).as_deref(), Some("LANG=C.UTF-8"), "{own:?}");
            assert_ne!(lang(&[], &[own]).as_deref(), Some("LANG=C.UTF-8"), "{own:?}");
        }
    }

    #[test]
    fn extra_variables_win_and_each_name_is_there_once() {
        let cleaned = cleaned(&[("PATH", "/a")], &[("PATH", "/b"), ("TERM", "vt100")], &other());
        assert_eq!(cleaned.iter().filter(|it| it.starts_with("PATH=")).count(), 1);
        assert!(cleaned.contains(&"PATH=/b".to_owned()));
        assert!(cleaned.contains(&"TERM=vt100".to_owned()));
    }

    #[test]
    fn the_daemons_own_user_keeps_the_home_that_the_daemon_was_given() {
        let current = User::current().unwrap();
        assert!(cleaned(&[("HOME", "/data")], &[], &current).contains(&"HOME=/data".to_owned()));
    }

    #[test]
    fn there_is_a_path_even_where_the_daemon_has_none() {
        assert!(cleaned(&[], &[], &other()).contains(&format!("PATH={DEFAULT_PATH}")));
    }
}
