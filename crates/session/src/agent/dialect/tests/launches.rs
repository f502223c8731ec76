//! Command lines, environments and private files.

use serde_json::{Value, json};

use crate::agent::{
    AcpCommand, Dialect, Gateway, KNOWN, Launch, McpServer, PermissionMode, Settings, Start,
    interactive, known, open,
};

fn settings() -> Settings {
    Settings {
        working_dir: "/work".to_owned(),
        private_dir: "/private/".to_owned(),
        ..Settings::default()
    }
}

fn team() -> McpServer {
    McpServer {
        name: "team".to_owned(),
        command: "/bin/warren".to_owned(),
        args: vec!["team".to_owned(), "mcp \"x\"\u{7f}".to_owned()],
        env: vec![("TEAM_TOKEN".to_owned(), "s3cret".into())],
    }
}

fn gateway() -> Gateway {
    Gateway {
        base_url: "http://127.0.0.1:9178".to_owned(),
        key: "k3y".into(),
        model: "tiny".to_owned(),
    }
}

/// With everything that can be set.
fn full() -> Settings {
    Settings {
        model: Some("opus".to_owned()),
        extra_args: vec!["--effort=high".to_owned()],
        mcp_servers: vec![team()],
        gateway: Some(gateway()),
        ..settings()
    }
}

fn launch(provider: &str, settings: Settings, conversation: Option<&str>) -> Launch {
    let mut dialect: Box<dyn Dialect> = open(provider, &[], settings).unwrap();
    dialect.launch(Start { conversation, prompt: "--version; $(reboot)", id: "i" })
}

fn env<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
    launch.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn file(launch: &Launch, name: &str) -> Value {
    let file = launch.files.iter().find(|file| file.name == name).expect("the file is there");
    serde_json::from_str(&file.contents).unwrap()
}

#[test]
fn every_known_provider_opens_under_its_name_and_starts_its_program() {
    for of in KNOWN {
        let launch = launch(of.name, settings(), None);
        assert_eq!(launch.program, of.program);
        assert_eq!(open(of.name, &[], settings()).unwrap().provider(), of.name);
        assert_eq!(known(of.name), Some(&of));
        let other = Settings { program: Some("/opt/x".to_owned()), ..settings() };
        assert_eq!(self::launch(of.name, other, None).program, "/opt/x");
    }
}

#[test]
fn no_prompt_and_no_secret_stands_in_a_command_line_or_shows_itself() {
    for of in KNOWN {
        let launch = launch(of.name, full(), Some("id-1"));
        let args = launch.args.join(" ");
        assert!(!args.contains("reboot"), "{args}");
        assert!(!args.contains("s3cret") && !args.contains("k3y"), "{args}");
        let shown = format!("{launch:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("k3y"), "{shown}");
    }
}

#[test]
fn an_extra_argument_stands_before_what_ends_the_flags() {
    for of in KNOWN {
        let args = launch(of.name, full(), Some("id-1")).args;
        let at = args.iter().position(|arg| arg == "--effort=high").expect("it is there");
        assert!(args.iter().position(|arg| arg == "-" || arg == "resume").is_none_or(|p| at < p));
    }
}

#[test]
fn claude_speaks_json_both_ways_and_asks_on_its_output() {
    let launch = launch("claude", settings(), Some("id-1"));
    assert_eq!(
        launch.args,
        [
            "-p",
            "--input-format=stream-json",
            "--output-format=stream-json",
            "--verbose",
            "--include-partial-messages",
            "--replay-user-messages",
            "--permission-prompt-tool=stdio",
            "--permission-mode=default",
            "--resume=id-1",
        ]
    );
    assert_eq!((launch.env.len(), launch.files.len()), (0, 0));
}

#[test]
fn claude_at_a_gateway_with_a_team() {
    let launch = launch("claude", full(), None);
    for arg in ["--model=tiny", "--mcp-config=/private/claude-mcp.json", "--allowedTools=mcp__team"]
    {
        assert!(launch.args.iter().any(|a| a == arg), "{arg}");
    }
    assert_eq!(env(&launch, "ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:9178"));
    assert_eq!(env(&launch, "ANTHROPIC_AUTH_TOKEN"), Some("k3y"));
    assert_eq!(env(&launch, "ANTHROPIC_API_KEY"), Some(""), "only one may be set");
    for size in ["OPUS", "SONNET", "HAIKU"] {
        assert_eq!(env(&launch, &format!("ANTHROPIC_DEFAULT_{size}_MODEL")), Some("tiny"));
    }
    assert_eq!(
        file(&launch, "claude-mcp.json"),
        json!({"mcpServers":{"team":{"type":"stdio","command":"/bin/warren",
            "args":["team","mcp \"x\"\u{7f}"],"env":{"TEAM_TOKEN":"s3cret"}}}})
    );
}

#[test]
fn codex_at_a_gateway_with_a_team() {
    let launch = launch("codex", full(), Some("id-1"));
    assert_eq!(
        launch.args,
        [
            "exec",
            "--json",
            "--skip-git-repo-check",
            r#"--config=approval_policy="never""#,
            r#"--config=sandbox_mode="workspace-write""#,
            r#"--config=model_provider="warren""#,
            r#"--config=model_providers.warren.name="Warren""#,
            r#"--config=model_providers.warren.base_url="http://127.0.0.1:9178/v1""#,
            r#"--config=model_providers.warren.env_key="AGENT_GATEWAY_KEY""#,
            r#"--config=model_providers.warren.wire_api="responses""#,
            r#"--config=mcp_servers.team.command="/bin/warren""#,
            r#"--config=mcp_servers.team.args=["team","mcp \"x\"\u007F"]"#,
            r#"--config=mcp_servers.team.env_vars=["TEAM_TOKEN"]"#,
            r#"--config=mcp_servers.team.default_tools_approval_mode="approve""#,
            "--model=tiny",
            "--effort=high",
            "resume",
            "id-1",
            "-",
        ]
    );
    assert_eq!(env(&launch, "AGENT_GATEWAY_KEY"), Some("k3y"));
    assert_eq!(env(&launch, "TEAM_TOKEN"), Some("s3cret"));
    assert_eq!(env(&launch, "OPENAI_BASE_URL"), None, "it is ignored");
}

#[test]
fn gemini_at_a_gateway_with_a_team() {
    let launch = launch("gemini", full(), None);
    assert!(launch.args.contains(&"--model=tiny".to_owned()));
    assert_eq!(env(&launch, "GOOGLE_GEMINI_BASE_URL"), Some("http://127.0.0.1:9178"));
    assert_eq!(env(&launch, "GEMINI_API_KEY"), Some("k3y"));
    assert_eq!(env(&launch, "GEMINI_CLI_HOME"), Some("/private/"));
    assert_eq!(env(&launch, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"), None);
    let written = file(&launch, ".gemini/settings.json");
    assert_eq!(written["security"]["auth"]["selectedType"], "gemini-api-key");
    assert_eq!(written["mcpServers"]["team"]["trust"], true);
    assert_eq!(written["mcpServers"]["team"]["env"]["TEAM_TOKEN"], "s3cret");
}

#[test]
fn opencode_at_a_gateway_with_a_team() {
    let launch = launch("opencode", full(), None);
    assert!(launch.args.contains(&"--model=warren/tiny".to_owned()));
    assert_eq!(env(&launch, "OPENCODE_CONFIG"), Some("/private/opencode.json"));
    let written = file(&launch, "opencode.json");
    let provider = &written["provider"]["warren"];
    assert_eq!(provider["npm"], "@ai-sdk/openai-compatible");
    let options = json!({"baseURL":"http://127.0.0.1:9178/v1","apiKey":"k3y"});
    assert_eq!(provider["options"], options);
    assert_eq!(provider["models"], json!({"tiny":{}}));
    assert_eq!(
        written["mcp"]["team"],
        json!({"type":"local","enabled":true,"environment":{"TEAM_TOKEN":"s3cret"},
            "command":["/bin/warren","team","mcp \"x\"\u{7f}"]})
    );
}

#[test]
fn the_built_in_speakers_of_acp_find_the_gateway_but_are_told_of_servers_later() {
    let gemini = launch("gemini-acp", full(), None);
    assert_eq!(gemini.args[..2], ["--acp", "--skip-trust"]);
    assert!(gemini.args.contains(&"--model=tiny".to_owned()));
    assert_eq!(file(&gemini, ".gemini/settings.json").get("mcpServers"), None);
    let opencode = launch("opencode-acp", full(), None);
    assert_eq!(opencode.args, ["acp", "--effort=high"]);
    let written = file(&opencode, "opencode.json");
    assert_eq!((written["model"].as_str(), written.get("mcp")), (Some("warren/tiny"), None));
}

#[test]
fn opencode_over_acp_is_told_its_own_model_in_its_settings() {
    let model = Some("anthropic/opus".to_owned());
    let of_its_own = Settings { model, mcp_servers: vec![team()], ..settings() };
    let acp = launch("opencode-acp", of_its_own.clone(), None);
    assert_eq!(env(&acp, "OPENCODE_CONFIG"), Some("/private/opencode.json"));
    assert_eq!(file(&acp, "opencode.json"), json!({"model":"anthropic/opus"}));
    let run = launch("opencode", of_its_own, None);
    assert!(run.args.contains(&"--model=anthropic/opus".to_owned()));
    assert_eq!(file(&run, "opencode.json").get("model"), None);
}

#[test]
fn each_says_in_its_own_way_what_may_be_done_unasked() {
    let ways = [
        ("claude", PermissionMode::AcceptEdits, "--permission-mode=acceptEdits"),
        ("claude", PermissionMode::Plan, "--permission-mode=plan"),
        ("claude", PermissionMode::Bypass, "--permission-mode=bypassPermissions"),
        ("codex", PermissionMode::Plan, r#"--config=sandbox_mode="read-only""#),
        ("codex", PermissionMode::Bypass, r#"--config=sandbox_mode="danger-full-access""#),
        ("gemini", PermissionMode::Ask, "--approval-mode=default"),
        ("gemini", PermissionMode::AcceptEdits, "--approval-mode=auto_edit"),
        ("gemini", PermissionMode::Plan, "--approval-mode=plan"),
        ("gemini", PermissionMode::Bypass, "--approval-mode=yolo"),
        ("opencode", PermissionMode::Plan, "--agent=plan"),
        ("opencode", PermissionMode::Bypass, "--auto"),
    ];
    for (provider, permissions, arg) in ways {
        let launch = launch(provider, Settings { permissions, ..settings() }, None);
        assert!(launch.args.iter().any(|a| a == arg), "{provider} {permissions:?}");
    }
}

#[test]
fn a_configured_provider_goes_before_one_that_is_known() {
    let command = AcpCommand {
        name: "claude".to_owned(),
        command: "/opt/claude-acp".to_owned(),
        args: vec!["--stdio".to_owned()],
        env: vec![("A".to_owned(), "b".into())],
    };
    let mut dialect = open("claude", &[command], full()).unwrap();
    let launch = dialect.launch(Start { conversation: None, prompt: "x", id: "i" });
    assert_eq!((launch.program.as_str(), launch.args.len()), ("/opt/claude-acp", 2));
    assert_eq!(env(&launch, "A"), Some("b"));
}

#[test]
fn at_a_terminal_a_program_has_its_own_interface_and_the_same_model_and_servers() {
    for (provider, begins, may_not) in [
        ("claude", "--permission-mode=default", "-p"),
        ("codex", r#"--config=approval_policy="on-request""#, "exec"),
        ("gemini", "--skip-trust", "--output-format=stream-json"),
        ("opencode", "--model=warren/tiny", "run"),
    ] {
        let headless = launch(provider, full(), None);
        let launch = interactive(provider, full()).unwrap();
        assert_eq!(launch.args[0], begins);
        assert!(!launch.args.iter().any(|arg| arg == may_not), "{provider}");
        assert!(launch.args.iter().any(|arg| arg == "--effort=high"), "{provider}");
        assert_eq!((launch.env, launch.files), (headless.env, headless.files));
        assert_eq!(launch.stdin, None);
    }
    assert!(interactive("somebody", full()).is_err());
}
