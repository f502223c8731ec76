//! Further arguments of agents: in one form, and only those that the caller may give.
//!
//! An argument is as powerful as code: a flag may name a program to run, or a file to read. So
//! callers below administrators may give only the flags on a list. A value never stands alone,
//! where it could be taken for a flag: `--flag value` becomes `--flag=value`.

use std::sync::Arc;

use session::agent::PermissionMode;

use crate::refusal::Refusal;

/// The flags that every caller may give, beside those that the settings allow.
const HARMLESS: [&str; 6] = [
    "--verbose",
    "--max-turns",
    "--max-budget-usd",
    "--append-system-prompt",
    "--effort",
    "--fallback-model",
];
/// The permission modes that every caller may choose: in each of them the agent asks before some
/// actions at least.
const ASKING: [&str; 3] = ["default", "acceptEdits", "plan"];
/// The flag that sets the permission mode, the same for all agents.
const MODE: &str = "--permission-mode";
/// The flag that lets the agent do everything without asking.
const UNASKED: &str = "--dangerously-skip-permissions";

/// Arguments in one form, and the permission mode that they set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Args {
    /// Each is `--flag` or `--flag=value`.
    pub(super) rest: Vec<String>,
    pub(super) permissions: PermissionMode,
}

/// The arguments that callers below administrators may give.
#[derive(Clone)]
pub(crate) struct ArgRules {
    allowed: Arc<[String]>,
}

impl ArgRules {
    pub(crate) fn new(allowed: &[String]) -> Self {
        Self { allowed: allowed.into() }
    }

    /// Refuses arguments that this caller may not give to an agent.
    pub(crate) fn check(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        check(args, &self.allowed, administrator)
    }
}

/// Refuses malformed arguments; for callers below administrators also flags that are not on the
/// list.
fn check(args: &[String], allowed: &[String], administrator: bool) -> Result<(), Refusal> {
    read(args)?;
    let joined = joined(args)?;
    let refused = joined.iter().find(|arg| !administrator && !is_allowed(arg, allowed));
    refused.map_or(Ok(()), |arg| Err(not_allowed(arg)))
}

/// The arguments for the program. `--verbose` is left out: a dialect that needs it adds it.
pub(super) fn read(args: &[String]) -> Result<Args, Refusal> {
    let mut read = Args::default();
    for arg in joined(args)? {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            (UNASKED, "") => read.permissions = PermissionMode::Bypass,
            (MODE, mode) => read.permissions = permissions(mode)?,
            ("--verbose", "") => {}
            _ => read.rest.push(arg),
        }
    }
    Ok(read)
}

/// Joins each value that stands alone to the flag before it. A value without a flag is an error.
fn joined(args: &[String]) -> Result<Vec<String>, Refusal> {
    let mut joined: Vec<String> = Vec::new();
    let mut takes_value = false;
    for arg in args {
        if arg.starts_with('-') {
            takes_value = !arg.contains('=');
            joined.push(arg.clone());
            continue;
        }
        let flag = joined.last_mut().filter(|_| takes_value);
        let flag = flag.ok_or_else(|| {
            Refusal::Invalid(format!("extra_args: {} belongs to no flag", shown(arg)))
        })?;
        flag.push('=');
        flag.push_str(arg);
        takes_value = false;
    }
    Ok(joined)
}

fn permissions(mode: &str) -> Result<PermissionMode, Refusal> {
    Ok(match mode {
        "default" => PermissionMode::Ask,
        "acceptEdits" => PermissionMode::AcceptEdits,
        "plan" => PermissionMode::Plan,
        "bypassPermissions" => PermissionMode::Bypass,
        other => {
            return Err(Refusal::Invalid(format!(
                "extra_args: {MODE} is default, acceptEdits, plan or bypassPermissions, not {}",
                shown(other)
            )));
        }
    })
}

fn is_allowed(arg: &str, allowed: &[String]) -> bool {
    let (flag, value) = arg.split_once('=').unwrap_or((arg, ""));
    // The settings name flags with or without dashes.
    let same = |allowed: &str| allowed.trim_start_matches('-') == flag.trim_start_matches('-');
    HARMLESS.contains(&flag)
        || (flag == MODE && ASKING.contains(&value))
        || allowed.iter().any(|allowed| same(allowed))
}

fn not_allowed(arg: &str) -> Refusal {
    Refusal::Invalid(format!(
        "extra_args: {} needs the scope workspace:admin, or the administrator's leave: \
         allowed_args in the section [workspace.agents] of the configuration; everybody may use {}",
        shown(arg.split('=').next().unwrap_or(arg)),
        HARMLESS.join(", "),
    ))
}

/// The part of an argument that an error shows.
fn shown(arg: &str) -> String {
    format!("{:?}", &arg[..arg.floor_char_boundary(100)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    fn refused(given: &[&str], allowed: &[&str], administrator: bool) -> String {
        check(&args(given), &args(allowed), administrator).unwrap_err().to_string()
    }

    #[test]
    fn a_value_that_stands_alone_is_joined_to_its_flag() {
        let read = read(&args(&["--max-turns", "3", "--a=b", "--effort", "high"])).unwrap();
        assert_eq!(read.rest, ["--max-turns=3", "--a=b", "--effort=high"]);
    }

    #[test]
    fn a_value_without_a_flag_is_refused_for_everybody() {
        assert!(refused(&["rm"], &[], true).contains("\"rm\" belongs to no flag"));
        assert!(refused(&["--a=b", "c"], &[], true).contains("\"c\""));
        assert!(refused(&["--a", "b", "c"], &[], true).contains("\"c\""));
    }

    #[test]
    fn callers_below_administrators_have_a_list() {
        for harmless in ["--verbose", "--max-turns=5", "--append-system-prompt=be short"] {
            check(&args(&[harmless]), &[], false).unwrap();
        }
        for dangerous in ["--mcp-config=/tmp/x", "--settings", "--add-dir=/", UNASKED, "-c"] {
            let words = refused(&[dangerous], &[], false);
            assert!(words.contains("allowed_args"), "{words}");
            check(&args(&[dangerous]), &[], true).unwrap();
        }
        for written in ["--add-dir", "add-dir"] {
            check(&args(&["--add-dir", "/srv"]), &args(&[written]), false).unwrap();
        }
    }

    #[test]
    fn unasked_permissions_are_set_alike_for_all_agents() {
        let of = |given: &[&str]| read(&args(given)).unwrap();
        assert_eq!(of(&[]).permissions, PermissionMode::Ask);
        assert_eq!(of(&["--permission-mode", "plan"]).permissions, PermissionMode::Plan);
        assert_eq!(of(&[UNASKED]).permissions, PermissionMode::Bypass);
        assert_eq!(of(&[UNASKED, "--verbose"]).rest, Vec::<String>::new());
        assert!(read(&args(&["--permission-mode=x"])).is_err());
        check(&args(&["--permission-mode=acceptEdits"]), &[], false).unwrap();
        assert!(check(&args(&["--permission-mode=bypassPermissions"]), &[], false).is_err());
    }

    #[test]
    fn an_errors_text_is_bounded() {
        assert!(refused(&["ä".repeat(5000).as_str()], &[], true).len() < 300);
    }
}
