//! Settings with which no program is started.

use crate::agent::{BadSettings, KNOWN, McpServer, Settings, open};

fn refused(provider: &str, settings: Settings) -> BadSettings {
    open(provider, &[], settings).unwrap_err()
}

fn with_argument(argument: &str) -> Settings {
    Settings { extra_args: vec![argument.to_owned()], ..Settings::default() }
}

#[test]
fn an_unknown_provider_is_named_with_those_that_are_known() {
    let error = refused("cursor", Settings::default()).to_string();
    assert!(error.contains("\"cursor\"") && error.contains("gemini-acp"), "{error}");
    assert!(refused(&"x".repeat(10_000), Settings::default()).to_string().len() < 300);
}

#[test]
fn an_argument_that_is_no_flag_is_refused_and_never_becomes_a_prompt() {
    for of in KNOWN {
        for argument in ["", "-", "--", "-s", "x", "--=x", "---x", "-- x", "--a\0b", "a=--b"] {
            let error = refused(of.name, with_argument(argument));
            assert!(matches!(error, BadSettings::NotAFlag { .. }), "{} {argument:?}", of.name);
        }
    }
}

#[test]
fn flags_that_would_change_the_dialect_are_refused() {
    for (provider, argument) in [
        ("claude", "--output-format=text"),
        ("claude", "--resume"),
        ("claude", "--permission-mode=bypassPermissions"),
        ("claude", "--dangerously-skip-permissions"),
        ("codex", "--json"),
        ("gemini", "--output-format=text"),
        ("gemini", "--yolo"),
        ("opencode", "--format=default"),
        ("opencode", "--auto"),
        ("gemini-acp", "--experimental-acp"),
    ] {
        let error = refused(provider, with_argument(argument));
        assert!(matches!(error, BadSettings::Reserved { .. }), "{provider} {argument}");
    }
}

#[test]
fn names_of_models_that_no_model_has_are_refused() {
    for model in ["", "a\nb", "{env:HOME}", &"x".repeat(257)] {
        let settings = Settings { model: Some(model.to_owned()), ..Settings::default() };
        assert_eq!(refused("opencode", settings), BadSettings::Model);
    }
}

#[test]
fn names_of_servers_that_would_break_a_setting_are_refused() {
    for name in ["", "a.b", "a b", "é", &"x".repeat(65)] {
        let server = McpServer {
            name: name.to_owned(),
            command: "/bin/x".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
        };
        let settings = Settings { mcp_servers: vec![server], ..Settings::default() };
        assert!(matches!(refused("codex", settings), BadSettings::ServerName { .. }), "{name}");
    }
}

#[test]
fn two_servers_that_want_one_variable_differently_are_refused_where_there_is_one_environment() {
    let server = |name: &str, value: &str| McpServer {
        name: name.to_owned(),
        command: "/bin/x".to_owned(),
        args: Vec::new(),
        env: vec![("TOKEN".to_owned(), value.into())],
    };
    let settings = |other: &str| Settings {
        mcp_servers: vec![server("a", "1"), server("b", other)],
        ..Settings::default()
    };
    let variable = BadSettings::Variable { variable: "TOKEN".to_owned() };
    assert_eq!(refused("codex", settings("2")), variable);
    open("codex", &[], settings("1")).unwrap();
    open("claude", &[], settings("2")).unwrap();
}
