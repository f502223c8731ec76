//! `warren service` with a systemd that only writes down what it is told.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use testkit::{RefusingPort, process::settings, within};
use tokio::process::Command;

use crate::{
    cli::Ran,
    common::{binary, serve},
};

/// Answers as the files beside it say.
const SYSTEMCTL: &str = r#"#!/bin/sh
here="$(dirname "$0")"
echo "systemctl $*" >>"$here/calls"
case "$*" in
  *is-system-running) cat "$here/system" ;;
  *" show "* | "show "*)
    echo x >>"$here/shows"
    sed "s/SHOWS/$(wc -l <"$here/shows")/" "$here/state"
    ;;
esac
"#;

const JOURNALCTL: &str = "#!/bin/sh\necho \"journalctl $*\"\n";

const ACTIVE: &str = "ActiveState=active\nSubState=running\nMainPID=77\nUnitFileState=enabled\n";

/// A home directory, and a systemd.
struct Machine(tempfile::TempDir);

impl Machine {
    fn with(system: &str, state: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(machine.path("bin")).unwrap();
        machine.write("bin/system", system);
        machine.write("bin/state", state);
        for (name, script) in [("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)] {
            let path = machine.path("bin").join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn unit(&self) -> PathBuf {
        self.path("home/.config/systemd/user/warren.service")
    }

    /// The commands to systemd, without its own questions.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("bin/calls")).unwrap_or_default();
        let told =
            calls.lines().filter(|call| !call.contains("show") && !call.contains("is-system"));
        told.map(str::to_owned).collect()
    }

    async fn warren(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(binary());
        command.args(args).stdin(Stdio::null()).kill_on_drop(true);
        for variable in settings() {
            command.env_remove(variable);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.path("bin")).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).unwrap());
        command.env("HOME", self.path("home")).current_dir(self.0.path());
        // Without it root's data is in /var/lib.
        command.env("XDG_DATA_HOME", self.path("home/.local/share"));
        let output = within("a command", command.output()).await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_users_service_is_installed_shown_and_removed_and_its_data_stays() {
    let machine = Machine::with("running", ACTIVE);
    let args =
        ["service", "install", "--user", "--", "--listen", "127.0.0.1:1", "--admin-token", "t0p"];
    let installed = machine.warren(&args).await;
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let expected = ["daemon-reload", "enable warren.service", "restart warren.service"];
    assert_eq!(machine.calls(), expected.map(|call| format!("systemctl --user {call}")));

    let unit = fs::read_to_string(machine.unit()).unwrap();
    let data = machine.path("home/.local/share/warren");
    let words = format!("serve --listen 127.0.0.1:1 --data-dir {}", data.display());
    assert!(unit.contains(&format!("ExecStart={} {words}\n", binary().display())), "{unit}");
    assert!(!unit.contains("t0p"), "{unit}");
    let environment = machine.path("home/.config/warren/warren.env");
    assert_eq!(fs::read_to_string(&environment).unwrap(), "WARREN_ADMIN_TOKEN=\"t0p\"\n");
    assert_eq!(mode(&environment), 0o600);
    assert!(!installed.out.contains("t0p") && !installed.err.contains("t0p"), "{installed:?}");

    let status = machine.warren(&["service", "status", "--json"]).await.json();
    let service = &status["services"][0];
    assert_eq!((&service["unit"], &service["pid"]), (&"warren.service".into(), &77.into()));
    assert_eq!(service["address"], "http://127.0.0.1:1");
    assert_eq!(service["data_dir"], data.display().to_string());

    let removed = machine.warren(&["service", "remove"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(
        removed.out.contains(&format!("kept: the data directory {}", data.display())),
        "{removed:?}"
    );
    assert!(!machine.unit().exists() && environment.exists());
    assert_eq!(machine.calls()[3], "systemctl --user disable --now warren.service");
    let none = machine.warren(&["service", "status"]).await;
    assert!(none.code == Some(1) && none.err.contains("warren service install"), "{none:?}");
}

#[tokio::test]
async fn without_systemd_nothing_is_written_and_the_command_is_shown() {
    let machine = Machine::with("offline", "");
    let refused = machine.warren(&["service", "install", "--user", "up"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("systemd does not run here, so nothing was written"),
        "{refused:?}"
    );
    assert!(refused.err.contains(" up --data-dir "), "{refused:?}");
    assert!(!machine.path("home").exists());
    let printed = machine.warren(&["service", "install", "--user", "--print"]).await;
    assert!(printed.out.contains("\n[Service]\nExecStart="), "{printed:?}");
    assert!(!machine.path("home").exists() && machine.calls().is_empty());
}

#[tokio::test]
async fn a_service_that_does_not_stay_up_is_reported() {
    let state = "ActiveState=activating\nSubState=auto-restart\nMainPID=0\nNRestarts=SHOWS\n";
    let machine = Machine::with("degraded", state);
    let failed = machine.warren(&["service", "install", "--user"]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("activating (auto-restart), started again"), "{failed:?}");
    assert!(failed.err.contains("does not stay up: `warren logs`"), "{failed:?}");
}

#[tokio::test]
async fn settings_with_which_no_server_starts_are_refused_before_anything_is_written() {
    let machine = Machine::with("running", ACTIVE);
    let args = ["service", "install", "--user", "--", "--listen", "0.0.0.0:1"];
    let refused = machine.warren(&args).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("no credentials are set"), "{refused:?}");
    assert!(machine.calls().is_empty() && !machine.unit().exists());
}

#[tokio::test]
async fn the_installed_server_is_shown_with_the_version_that_answers() {
    let daemon = serve().start().await;
    let machine = Machine::with("running", ACTIVE);
    let address = daemon.address().to_string();
    let args = ["service", "install", "--user", "--", "--listen", &address];
    let installed = machine.warren(&args).await;
    let line =
        format!("address      {}, Warren {} answers", daemon.url(), env!("CARGO_PKG_VERSION"));
    assert!(installed.out.contains(&line), "{installed:?}");
}

#[tokio::test]
async fn the_log_of_a_service_that_does_not_answer_comes_from_the_journal() {
    let machine = Machine::with("running", ACTIVE);
    fs::create_dir_all(machine.unit().parent().unwrap()).unwrap();
    fs::write(machine.unit(), "[Service]\n").unwrap();
    let refusing = RefusingPort::take();
    let (url, level) = (refusing.url(), ["--level", "warn"]);
    let args = ["logs", "--server", &url, "--admin-token", "t", "-n", "7", level[0], level[1]];
    let shown = machine.warren(&args).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.err.contains("this is the journal of warren.service"), "{shown:?}");
    let journal = "journalctl --user-unit=warren.service --output=cat --no-pager --quiet --lines=7";
    assert!(shown.out.starts_with(journal) && shown.out.contains("(ERROR|WARN)"), "{shown:?}");
}
