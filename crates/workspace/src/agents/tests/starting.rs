//! Programs, arguments, environment, files.

use std::path::Path;

use super::rig::{Rig, Watcher, create, open, prompt};
use crate::sessions::{NewEngine, NewSession};

fn with_args(rig: &Rig, provider: &str, args: &[&str]) -> NewSession {
    let provider = provider.to_owned();
    let extra_args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let engine = NewEngine::Agent { provider, model: Some("opus".to_owned()), extra_args };
    NewSession { engine, ..rig.site.shell("") }
}

#[tokio::test]
async fn a_program_that_is_missing_is_refused_with_how_to_install_it() {
    let mut rig = Rig::new();
    rig.site.settings.agents.programs.clear();
    let missing = rig.site.dir.path().join("missing");
    rig.site.settings.agents.programs.insert("claude".to_owned(), missing);
    rig.site.settings.agents.acp.insert("own".to_owned(), vec!["no-such-program".to_owned()]);
    let workspace = rig.site.start().await;
    for (provider, words) in [
        ("claude", "no program is at"),
        ("own", "\"no-such-program\", which is not found"),
        ("nobody", "known are claude, codex, gemini, opencode"),
    ] {
        let refused = create(&workspace, rig.new_session(provider)).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(workspace.counts().sessions, 0, "nothing remains of them");
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_program_that_vanishes_fails_the_turn_and_not_the_session() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "codex").await;
    let link = rig.agents.path("codex");
    let program = std::fs::read_link(&link).unwrap();
    std::fs::remove_file(&link).unwrap();
    let ended = seen.turn(&workspace, "say x").await;
    assert!(ended.error.unwrap().contains("no program"));
    std::os::unix::fs::symlink(program, link).unwrap();
    assert_eq!(seen.answer(&workspace, "say x").await, "x");
    workspace.shut_down().await;
}

#[tokio::test]
async fn arguments_and_the_model_reach_the_program() {
    let (rig, workspace) = Rig::start().await;
    let new = with_args(&rig, "claude", &["--verbose", "--max-turns", "3"]);
    let mut seen = Watcher::attach(&workspace, create(&workspace, new).await.unwrap());
    let args = seen.answer(&workspace, "args").await;
    for arg in ["--max-turns=3", "--model=opus", "--permission-mode=default"] {
        assert!(args.contains(arg), "{args}");
    }
    for bad in [&["--resume=x"][..], &["-c"], &["x"], &["--print"]] {
        assert!(create(&workspace, with_args(&rig, "claude", bad)).await.is_err(), "{bad:?}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn only_allowed_variables_of_the_daemons_environment_pass() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    assert_eq!(seen.answer(&workspace, "env CARGO_PKG_NAME").await, "unset");
    assert_ne!(seen.answer(&workspace, "env HOME").await, "unset");
    let path = seen.answer(&workspace, "env PATH").await;
    let own = rig.site.dir.path().join("agents");
    assert!(path.ends_with(own.to_str().unwrap()), "{path}");
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_agents_own_interface_runs_in_a_terminal() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["claude", "codex", "gemini", "opencode"] {
        let (provider_name, extra_args) = (provider.to_owned(), vec!["--effort=high".to_owned()]);
        let engine = NewEngine::Interactive { provider: provider_name, model: None, extra_args };
        let id = create(&workspace, NewSession { engine, ..rig.site.shell("") }).await.unwrap();
        let mut seen = Watcher::attach(&workspace, id);
        seen.until_shown(&format!("fake {provider}")).await;
        prompt(&workspace, id, "env TERM").unwrap();
        seen.until_shown("xterm-256color").await;
        workspace.sessions.kill(id).await.unwrap();
    }
    let engine =
        NewEngine::Interactive { provider: "own".into(), model: None, extra_args: Vec::new() };
    let refused = create(&workspace, NewSession { engine, ..rig.site.shell("") }).await;
    assert!(refused.is_err(), "it is known only by what it speaks");
    workspace.shut_down().await;
}

#[tokio::test]
async fn private_files_are_gone_when_the_session_is() {
    let mut rig = Rig::new();
    rig.site.settings.agents.gateway = Some(crate::Gateway { url: "http://127.0.0.1:9".into() });
    let workspace = rig.site.start().await;
    let engine = NewEngine::Agent {
        provider: "opencode".into(),
        model: Some("warren:tiny".into()),
        extra_args: Vec::new(),
    };
    let id = create(&workspace, NewSession { engine, ..rig.site.shell("") }).await.unwrap();
    let mut seen = Watcher::attach(&workspace, id);
    let path = seen.answer(&workspace, "env OPENCODE_CONFIG").await;
    assert!(Path::new(&path).starts_with(rig.site.settings.dir.join("agents")), "{path}");
    workspace.sessions.kill(id).await.unwrap();
    assert!(!Path::new(&path).parent().unwrap().exists());
    workspace.shut_down().await;
}
