//! From the first message to a session that takes prompts.

use serde_json::{Value, json};

use super::{
    super::{
        contract::{AgentOutput, TurnResult},
        json::{list, number, owned, text},
        words,
    },
    Abilities, Acp, Request, Stage, launch,
};
use crate::agent::usage::Usage;

/// The protocol's version that Warren speaks.
const VERSION: u64 = 1;

impl Acp {
    /// The first message. It offers no file system and no terminal: an agent has its own.
    pub(super) fn hello(&mut self) -> Vec<u8> {
        let none = json!({ "readTextFile": false, "writeTextFile": false });
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": { "fs": none, "terminal": false },
            "clientInfo": { "name": "warren", "title": "Warren", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request(Request::Initialize, "initialize", &params)
    }

    /// Handles the program's list of abilities, and opens a session.
    pub(super) fn take_abilities(&mut self, answer: Result<Value, String>) -> Vec<AgentOutput> {
        let result = match answer {
            Ok(result) => result,
            Err(why) => return self.close(&why),
        };
        let version = number(&result, "/protocolVersion");
        if version != VERSION {
            return self
                .close(&format!("It speaks version {version} of the protocol, not {VERSION}."));
        }
        let resume = result.pointer("/agentCapabilities/sessionCapabilities/resume");
        self.abilities = Abilities {
            are_known: true,
            load: result.pointer("/agentCapabilities/loadSession") == Some(&Value::Bool(true)),
            resume: resume.is_some_and(Value::is_object),
        };
        self.resume_or_open()
    }

    fn resume_or_open(&mut self) -> Vec<AgentOutput> {
        let Some(conversation) = self.conversation.clone() else {
            return vec![AgentOutput::Write(self.open_anew())];
        };
        let method = match (self.abilities.resume, self.abilities.load) {
            (true, _) => "session/resume",
            (false, true) => "session/load",
            (false, false) => return self.forget("This agent cannot go back into a conversation."),
        };
        let params = json!({ "sessionId": conversation, "cwd": self.settings.working_dir, "mcpServers": self.servers() });
        self.updates.mute();
        vec![AgentOutput::Write(self.request(Request::Load, method, &params))]
    }

    /// Gives up the conversation, which is lost. The turn goes on in a new conversation.
    fn forget(&mut self, why: &str) -> Vec<AgentOutput> {
        self.conversation = None;
        let notice = AgentOutput::notice(&format!("{why} A new one begins."));
        vec![notice, AgentOutput::Write(self.open_anew())]
    }

    pub(super) fn open_anew(&mut self) -> Vec<u8> {
        self.stage = Stage::Opening;
        let params = json!({ "cwd": self.settings.working_dir, "mcpServers": self.servers() });
        self.request(Request::New, "session/new", &params)
    }

    /// Handles the answer to a load or resume request. The program sends the history while it
    /// loads, so updates were muted until now.
    pub(super) fn end_load(&mut self, answer: Result<Value, String>) -> Vec<AgentOutput> {
        self.updates.unmute();
        let Some(session) = self.conversation.clone() else { return Vec::new() };
        match answer {
            Ok(result) => self.open(&session, &result),
            Err(why) => self.forget(&format!("The conversation could not be loaded: {why}.")),
        }
    }

    pub(super) fn take_session(&mut self, answer: Result<Value, String>) -> Vec<AgentOutput> {
        let result = match answer {
            Ok(result) => result,
            Err(why) => return self.close(&why),
        };
        let session = owned(&result, "/sessionId");
        if session.is_empty() {
            return self.close("It opened a session without an id.");
        }
        self.updates.begin_anew();
        let mut outputs = Vec::new();
        if words::is_id(&session) {
            self.conversation = Some(session.clone());
            outputs.push(AgentOutput::Conversation(session.clone()));
        }
        outputs.extend(self.open(&session, &result));
        outputs
    }

    fn open(&mut self, session: &str, result: &Value) -> Vec<AgentOutput> {
        self.stage = Stage::Open(session.to_owned());
        let mut outputs: Vec<AgentOutput> =
            self.choose_model(session, result).into_iter().collect();
        outputs.extend(self.choose_mode(session, result));
        outputs.extend(self.prompt_now(session).map(AgentOutput::Write));
        outputs
    }

    /// Notes that the program cannot give a session. The turn that waits for one fails; the next
    /// turn tries again.
    fn close(&mut self, why: &str) -> Vec<AgentOutput> {
        self.stage = Stage::Closed(why.to_owned());
        self.prompt = None;
        vec![AgentOutput::Ended(TurnResult::failed(why, Usage::default()))]
    }

    /// Chooses a model that the command line cannot name, among those that the session offers.
    fn choose_model(&mut self, session: &str, result: &Value) -> Option<AgentOutput> {
        let model = self.settings.model().filter(|_| !self.program.sets_model())?.to_owned();
        let offered = list(result, "/models/availableModels");
        if offered.iter().any(|offer| text(offer, "/modelId") == model) {
            let params = json!({ "sessionId": session, "modelId": model });
            return Some(AgentOutput::Write(self.request(
                Request::Choice,
                "session/set_model",
                &params,
            )));
        }
        let options = list(result, "/configOptions").iter();
        let found = options.clone().find(|option| text(option, "/category") == "model");
        let Some(option) = found.filter(|option| offers(option, &model)) else {
            return Some(AgentOutput::notice(&format!(
                "This agent offers no model \"{model}\"; it uses its own."
            )));
        };
        let params =
            json!({ "sessionId": session, "configId": owned(option, "/id"), "value": model });
        Some(AgentOutput::Write(self.request(
            Request::Choice,
            "session/set_config_option",
            &params,
        )))
    }

    /// Puts the session into its mode for planning. If it has no such mode, permission requests for
    /// changes are refused instead.
    fn choose_mode(&mut self, session: &str, result: &Value) -> Option<AgentOutput> {
        if !launch::wants_plan(&self.settings, &self.program) {
            return None;
        }
        let modes = list(result, "/modes/availableModes");
        if !modes.iter().any(|mode| text(mode, "/id") == launch::PLAN) {
            return Some(AgentOutput::notice(
                "This agent has no mode for planning only; what asks to change something is refused.",
            ));
        }
        let params = json!({ "sessionId": session, "modeId": launch::PLAN });
        Some(AgentOutput::Write(self.request(Request::Choice, "session/set_mode", &params)))
    }

    fn servers(&self) -> Value {
        let servers = self.settings.mcp_servers.iter().map(|server| {
            let env = server.env.iter();
            let env: Vec<Value> =
                env.map(|(name, value)| json!({ "name": name, "value": value.expose() })).collect();
            json!({ "name": server.name, "command": server.command, "args": server.args, "env": env })
        });
        Value::Array(servers.collect())
    }
}

/// Whether an option offers this model. Its values may come in groups.
fn offers(option: &Value, model: &str) -> bool {
    let options = list(option, "/options").iter();
    options.into_iter().any(|entry| {
        text(entry, "/value") == model
            || list(entry, "/options").iter().any(|inner| text(inner, "/value") == model)
    })
}
