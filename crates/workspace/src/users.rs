//! The users that sessions run as and files are accessed as.

use std::path::PathBuf;

use process::{User, as_user};

use crate::refusal::{Refusal, blocking};

/// Like [`find`], but does not block the calling thread.
pub(crate) async fn user(run_as: &[String], name: Option<&str>) -> Result<Option<User>, Refusal> {
    let Some(name) = name.map(str::to_owned) else { return Ok(None) };
    let allowed = run_as.to_vec();
    blocking(move || find(&allowed, Some(&name))).await
}

/// The user of this name, if sessions may run as it; `None` for the daemon's own user. The lookup
/// may ask a directory server, and block.
///
/// # Errors
/// When the name is not in the list of the settings, or no user of this machine has it. A name that
/// is not in the list is not looked up.
pub(crate) fn find(allowed: &[String], name: Option<&str>) -> Result<Option<User>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    if User::current().is_ok_and(|own| own.name == name) {
        return Ok(None);
    }
    if !allowed.iter().any(|allowed| allowed == name) {
        return Err(not_allowed(name));
    }
    User::lookup(name).map(Some).map_err(|error| Refusal::failed(&error))
}

/// Runs `f` with a user's rights on files; `None`: the daemon's own.
pub(crate) fn with_rights_of<T: Send>(
    user: Option<&User>,
    f: impl FnOnce() -> T + Send,
) -> Result<T, Refusal> {
    match user {
        None => Ok(f()),
        Some(user) => as_user(user, f).map_err(|error| Refusal::failed(&error)),
    }
}

/// The user's home directory, which `~` means; `None`: that of the daemon's own user.
///
/// # Errors
/// When `HOME` is not set, and the system does not know the daemon's own user.
pub fn home(user: Option<&User>) -> Result<PathBuf, Refusal> {
    let own = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (user, own) {
        (Some(user), _) => Ok(user.home.clone()),
        (None, Some(home)) => Ok(home.into()),
        (None, None) => Ok(current()?.home),
    }
}

/// The daemon's own user.
pub(crate) fn current() -> Result<User, Refusal> {
    User::current().map_err(|error| Refusal::failed(&error))
}

fn not_allowed(name: &str) -> Refusal {
    Refusal::Invalid(format!(
        "nothing may run as {name:?} here: an administrator allows it with run_as_users in the \
         section [workspace] of the configuration"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_refused_user_is_told_the_setting() {
        let refused = user(&allowed(&["alice"]), Some("nobody")).await.unwrap_err();
        assert!(refused.to_string().contains("run_as_users"), "{refused}");
        let unknown = user(&allowed(&["no-such-user"]), Some("no-such-user")).await.unwrap_err();
        assert!(unknown.to_string().contains("no-such-user"), "{unknown}");
    }

    #[tokio::test]
    async fn listed_users_are_found_and_the_daemons_own_needs_no_list() {
        let found = user(&allowed(&["nobody"]), Some("nobody")).await.unwrap();
        assert_eq!(found.map(|user| user.name), Some("nobody".to_owned()));
        let own = current().unwrap().name;
        assert_eq!(user(&allowed(&[]), Some(&own)).await.unwrap(), None);
        assert_eq!(user(&allowed(&[]), None).await.unwrap(), None);
    }
}
