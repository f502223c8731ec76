//! The advice where no manager of services runs.

use std::path::Path;

use super::place::Scope;

/// The program that starts other programs on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starter {
    Container,
    OpenRc,
    Launchd,
    TaskScheduler,
    /// systemd runs, but none for this user.
    UserWithoutSystemd,
    Unknown,
}

/// Why no service can be installed, and what to do by hand. `command`: the command line of the service.
pub(super) fn words(scope: Scope, command: &str) -> String {
    words_for(starter(scope), command)
}

fn starter(scope: Scope) -> Starter {
    let is_there = |path| Path::new(path).exists();
    match () {
        () if crate::system::IS_MACOS => Starter::Launchd,
        () if crate::system::IS_WINDOWS => Starter::TaskScheduler,
        () if is_there("/run/systemd/system") && scope == Scope::User => {
            Starter::UserWithoutSystemd
        }
        () if is_there("/run/openrc") || is_there("/sbin/openrc-run") => Starter::OpenRc,
        () if is_there("/.dockerenv") || is_there("/run/.containerenv") => Starter::Container,
        () => Starter::Unknown,
    }
}

/// A command line of systemd as an argument of `schtasks`.
fn for_task(command: &str) -> String {
    let plain = command.replace("\\\\", "\\").replace("%%", "%").replace("$$", "$");
    plain.replace('"', "\\\"")
}

fn words_for(starter: Starter, command: &str) -> String {
    let by_hand = match starter {
        Starter::Container => format!(
            "This is a container: make Warren its command, and let the container be restarted:\n  \
             docker run --restart unless-stopped … {command}"
        ),
        Starter::OpenRc => format!(
            "For OpenRC, write /etc/init.d/warren (mode 755):\n  \
             #!/sbin/openrc-run\n  supervisor=supervise-daemon\n  command_user=warren\n  \
             command={}\n  command_args=\"{}\"\nand then: rc-update add warren && rc-service warren start",
            command.split(' ').next().unwrap_or_default(),
            command.split_once(' ').map_or("", |(_, arguments)| arguments)
        ),
        Starter::Launchd => format!(
            "launchd starts a user's services while they are logged in at the screen: log in there, and run this again. \
             One for the whole machine is written by hand; see the book's page on operating systems. It runs:\n  {command}"
        ),
        Starter::TaskScheduler => format!(
            "A scheduled task starts it when you log in:\n  \
             schtasks /Create /TN Warren /SC ONLOGON /TR \"{}\"\n  \
             schtasks /Run /TN Warren\nand this ends and removes it:\n  \
             schtasks /End /TN Warren\n  schtasks /Delete /TN Warren /F",
            for_task(command)
        ),
        Starter::UserWithoutSystemd => "This login has no systemd of its own: log in as this user itself (not by su or sudo), \
             or set XDG_RUNTIME_DIR=/run/user/$(id -u), or install the machine's service as root with --system"
            .to_owned(),
        Starter::Unknown => format!(
            "Start it by what starts other programs here. With cron, for example (crontab -e):\n  \
             @reboot {command}"
        ),
    };
    let missing = match starter {
        Starter::Launchd => "launchd has no session of this user",
        _ => "systemd does not run here",
    };
    format!("{missing}, so nothing was written. {by_hand}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_own_advice_with_the_command_in_it() {
        for starter in [Starter::Container, Starter::Launchd, Starter::Unknown] {
            let words = words_for(starter, "/bin/warren serve");
            assert!(words.contains("nothing was written") && words.contains("/bin/warren serve"));
        }
        let openrc = words_for(Starter::OpenRc, "/bin/warren serve --log info");
        assert!(openrc.contains("command=/bin/warren\n"), "{openrc}");
        assert!(openrc.contains("command_args=\"serve --log info\"\n"), "{openrc}");
        let task = words_for(Starter::TaskScheduler, r#""C:\\a b\\warren.exe" serve"#);
        assert!(task.contains(r#"/TR "\"C:\a b\warren.exe\" serve""#), "{task}");
        assert!(words_for(Starter::UserWithoutSystemd, "").contains("XDG_RUNTIME_DIR"));
    }
}
