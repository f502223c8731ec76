//! The text of `warren up` once it is up: how to ask it something, and what other machines need.

use std::{fmt::Write, path::Path};

use base::Secret;
use daemon::SecretSource;
use protocol::model_use::is_for_chat;
use worker::LocalBackend;

use super::{model_engines::OfferedModel, table::plain, web::login_address, words::bytes};

/// The content of the banner.
pub(crate) struct Banner {
    /// The server's URLs: the first for this machine, the others for other machines.
    pub(crate) urls: Vec<String>,
    /// Whether only this machine can reach it.
    pub(crate) only_here: bool,
    /// The port at which others would reach it, if it listened on all addresses.
    pub(crate) port: u16,
    /// The model servers that were found; `None` if others were named, or the demo.
    pub(crate) found: Option<Vec<LocalBackend>>,
    /// The models that this machine serves itself.
    pub(crate) engines: Vec<OfferedModel>,
    /// The backends, each with the models that it offers.
    pub(crate) offers: Vec<(String, Vec<String>)>,
    /// The models that are served.
    pub(crate) models: Vec<String>,
    /// Whether requests of this machine need a key.
    pub(crate) needs_key: bool,
    pub(crate) client_key: Option<SecretSource>,
    pub(crate) worker_secret: SecretSource,
    /// The code by which one machine joins, if others can reach it.
    pub(crate) invitation: Option<Secret>,
    /// The code that signs a browser in, if the banner is seen by people only.
    pub(crate) login_code: Option<Secret>,
}

impl Banner {
    pub(crate) fn text(&self) -> String {
        let mut text = "\nWarren is up.\n".to_owned();
        let parts = [self.backends(), self.page(), self.example(), self.clients(), self.others()];
        for part in parts {
            // Writing to a string does not fail.
            let _ = write!(text, "\n{part}\n");
        }
        text
    }

    /// The lines about backends.
    fn backends(&self) -> String {
        let is_engine =
            |backend: &String| self.engines.iter().any(|offered| offered.program == *backend);
        let offers = self.offers.iter();
        let offers = offers.filter(|(backend, models)| !models.is_empty() && !is_engine(backend));
        let mut lines: Vec<String> = offers
            .map(|(backend, models)| {
                format!("{} offers {}", plain(&self.called(backend)), plain(&models.join(", ")))
            })
            .collect();
        lines.extend(self.own_models());
        let Some(found) = &self.found else { return lines.join("\n") };
        let empty = found.iter().filter(|found| found.models.is_empty());
        lines.extend(
            empty.map(|found| format!("{} at {} has no model yet", found.name, plain(&found.url))),
        );
        if self.engines.is_empty() && found.iter().all(|found| found.models.is_empty()) {
            let why =
                if found.is_empty() { "No model server was found" } else { "No model was found" };
            lines.push(format!(
                "{why} on this machine, so the built-in demo answers.\n\
                 It is no model: it tells about Warren. Start Ollama, llama.cpp, vLLM or LM\n\
                 Studio, and it is here in seconds. Or serve a model file: warren up --gguf FILE"
            ));
        }
        lines.join("\n")
    }

    /// The models that this machine serves itself, by their programs.
    fn own_models(&self) -> Vec<String> {
        let mut programs: Vec<&str> = Vec::new();
        for offered in &self.engines {
            if !programs.contains(&offered.program.as_str()) {
                programs.push(&offered.program);
            }
        }
        let lines = programs.into_iter().flat_map(|program| {
            let own = || self.engines.iter().filter(move |it| it.program == program);
            let head = format!("{} serves, each loads on its first request:", plain(program));
            let shown = own().take(SHOWN).map(own_model);
            let more = own().count().saturating_sub(SHOWN);
            let rest = (more > 0).then(|| format!("  and {more} more: warren models"));
            std::iter::once(head).chain(shown).chain(rest).collect::<Vec<_>>()
        });
        lines.collect()
    }

    /// A backend, with the name of the program where it was found.
    fn called(&self, backend: &str) -> String {
        let is_it = |found: &&LocalBackend| found.url.ends_with(&format!("//{backend}"));
        match self.found.iter().flatten().find(is_it) {
            Some(found) => format!("{} at {backend}", found.name),
            None => backend.to_owned(),
        }
    }

    /// A command to try.
    fn example(&self) -> String {
        let model = self.models.iter().find(|model| is_for_chat(model)).or(self.models.first());
        let (url, key) = (self.own_url(), if self.needs_key { KEY_HEADER } else { "" });
        let note = match model {
            Some(_) => "",
            None => "Put one of the models in place of MODEL, once there are some.\n",
        };
        let name = serde_json::Value::from(model.map_or("MODEL", String::as_str));
        let question = r#""messages":[{"role":"user","content":"What is Warren?"}]"#;
        let body = format!("{{\"model\":{name},\"stream\":true,{question}}}");
        format!(
            "{note}Ask it something:\n\n  \
               curl -N {url}/v1/chat/completions -H 'content-type: application/json' {key}\\\n    \
                 -d '{}'",
            body.replace('\'', "'\\''")
        )
    }

    /// The line about the web page.
    fn page(&self) -> String {
        let own = self.own_url();
        match &self.login_code {
            Some(code) => format!(
                "In a browser, signed in, once and within ten minutes (`warren web` makes more):\n\n  {}",
                login_address(own, code.expose())
            ),
            None => format!("In a browser: {own}/ (`warren web` signs you in)"),
        }
    }

    fn clients(&self) -> String {
        let key = if self.needs_key { "the key below" } else { "any key from here" };
        let own = self.own_url();
        let finds = if self.port == OLLAMA_PORT { ", and find it here by themselves" } else { "" };
        format!(
            "Any OpenAI client works: base URL {own}/v1, {key}.\n\
             Tools for Ollama take {own}{finds}."
        )
    }

    /// The lines for other machines.
    fn others(&self) -> String {
        let port = self.port;
        let how = match (self.only_here, self.urls.get(1).or(self.urls.first())) {
            (true, _) => {
                format!("For other machines, start with --listen 0.0.0.0:{port} and give them")
            }
            (false, Some(url)) if !is_loopback(url) => {
                format!("Other machines reach it at {url}. Give them")
            }
            _ => {
                format!("Other machines reach it at this machine's address, port {port}. Give them")
            }
        };
        let key = match &self.client_key {
            Some(key) => shown("the key       ", key),
            None => "a key of warren key create".to_owned(),
        };
        let secret = shown("", &self.worker_secret);
        format!(
            "{how}\n  {key}\n  or, to lend their models, the worker secret\n                {secret}\n  \
             or make a room to share models in: warren room create\n{}",
            self.invitation()
        )
    }

    /// The line by which one machine joins.
    fn invitation(&self) -> String {
        match &self.invitation {
            Some(code) => format!(
                "\nOr join one machine in one line, within an hour (`warren invite` makes more):\n\n  \
                   warren join {}",
                code.expose()
            ),
            None => format!(
                "To join a machine in one line: --listen 0.0.0.0:{}, then `warren invite`.",
                self.port
            ),
        }
    }

    fn own_url(&self) -> &str {
        self.urls.first().map_or("", String::as_str)
    }
}

/// The most models of one program that are shown.
const SHOWN: usize = 12;

/// A model with its size, and the memory that it takes.
fn own_model(offered: &OfferedModel) -> String {
    let size =
        offered.facts.file_bytes.map(|size| format!(", {}", bytes(size))).unwrap_or_default();
    let memory = offered.facts.memory_bytes.map(|memory| format!(", {} in memory", bytes(memory)));
    format!("  {}{size}{}", plain(&offered.name), memory.unwrap_or_default())
}

/// The port at which tools for Ollama look for it.
const OLLAMA_PORT: u16 = 11_434;

const KEY_HEADER: &str = "-H \"authorization: Bearer $KEY\" ";

/// The secret itself if it is new, since it is shown only once; otherwise the file that keeps it.
fn shown(label: &str, source: &SecretSource) -> String {
    match source {
        SecretSource::New { secret, file } => {
            format!(
                "{label}{}\n                (shown once; it is kept in {})",
                text(secret),
                path(file)
            )
        }
        SecretSource::Before { file } => format!("{label}in {}", path(file)),
        SecretSource::Given => format!("{label}that this server was started with"),
    }
}

fn text(secret: &Secret) -> &str {
    secret.expose()
}

fn path(file: &Path) -> String {
    plain(&file.display().to_string())
}

fn is_loopback(url: &str) -> bool {
    ["//127.", "//[::1]", "//localhost"].iter().any(|part| url.contains(part))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn banner() -> Banner {
        let file = PathBuf::from("/d/client.token");
        Banner {
            urls: vec!["http://127.0.0.1:9178".to_owned()],
            only_here: true,
            port: 9178,
            found: Some(Vec::new()),
            engines: Vec::new(),
            offers: vec![("demo".to_owned(), vec!["warren-demo".to_owned()])],
            models: vec!["warren-demo".to_owned()],
            needs_key: false,
            client_key: Some(SecretSource::New { secret: "wk_1".into(), file }),
            worker_secret: SecretSource::Before { file: PathBuf::from("/d/worker.secret") },
            invitation: None,
            login_code: None,
        }
    }

    #[test]
    fn a_browser_is_signed_in_by_a_code_only_where_people_alone_see_it() {
        let text = Banner { login_code: Some("abc".into()), ..banner() }.text();
        assert!(text.contains("\n  http://127.0.0.1:9178/#login=abc\n"), "{text}");
        let text = banner().text();
        assert!(text.contains("In a browser: http://127.0.0.1:9178/ (`warren web`"), "{text}");
    }

    fn ollama(models: &[&str]) -> LocalBackend {
        let models = models.iter().map(|&model| model.to_owned()).collect();
        let url = "http://127.0.0.1:11434".to_owned();
        LocalBackend { name: "Ollama".to_owned(), url, models }
    }

    #[test]
    fn the_example_names_a_model_that_answers_questions() {
        let models = ["nomic-embed-text", "qwen3:8b"].map(str::to_owned).to_vec();
        let offers = vec![("127.0.0.1:11434".to_owned(), models.clone())];
        let found = Some(vec![ollama(&["nomic-embed-text", "qwen3:8b"])]);
        let text = Banner { models, offers, found, ..banner() }.text();
        assert!(text.contains(r#"-d '{"model":"qwen3:8b","stream":true,"#), "{text}");
        assert!(text.contains("Ollama at 127.0.0.1:11434 offers nomic"), "{text}");
        assert!(!text.contains("demo") && !text.contains("No model"), "{text}");
        let none = Banner { models: Vec::new(), ..banner() }.text();
        assert!(
            none.contains(r#""model":"MODEL""#) && none.contains("in place of MODEL"),
            "{none}"
        );
    }

    #[test]
    fn it_says_what_was_found_and_claims_nothing_about_what_was_named() {
        let text = banner().text();
        assert!(text.contains("No model server was found on this machine"), "{text}");
        let text = Banner { found: Some(vec![ollama(&[])]), ..banner() }.text();
        assert!(text.contains("Ollama at http://127.0.0.1:11434 has no model yet"), "{text}");
        assert!(text.contains("No model was found"), "{text}");
        let text = Banner { found: None, ..banner() }.text();
        assert!(text.contains("demo offers warren-demo") && !text.contains("found"), "{text}");
    }

    #[test]
    fn own_models_are_shown_with_their_sizes_and_take_the_place_of_the_demo() {
        let facts = base::ModelFacts {
            file_bytes: Some(5 << 30),
            memory_bytes: Some(6 << 30),
            ..base::ModelFacts::default()
        };
        let offered = |number| OfferedModel {
            program: "llama-server".to_owned(),
            name: format!("m{number}"),
            facts: facts.clone(),
        };
        let engines: Vec<_> = (0..14).map(offered).collect();
        let offers = vec![("llama-server".to_owned(), vec!["m0".to_owned()])];
        let text = Banner { engines, offers, ..banner() }.text();
        assert!(text.contains("llama-server serves, each loads on its first request:\n"), "{text}");
        assert!(text.contains("\n  m0, 5.0 GiB, 6.0 GiB in memory\n"), "{text}");
        assert!(text.contains("\n  and 2 more: warren models\n"), "{text}");
        assert!(!text.contains("demo answers") && !text.contains("offers m0"), "{text}");
    }

    #[test]
    fn a_program_is_named_once_with_all_of_its_models() {
        let offered = |(program, name): (&str, &str)| OfferedModel {
            program: program.to_owned(),
            name: name.to_owned(),
            facts: base::ModelFacts::default(),
        };
        let engines = [("two", "a"), ("one", "b"), ("two", "c")].map(offered).to_vec();
        let text = Banner { engines, ..banner() }.text();
        let serves = "serves, each loads on its first request:";
        let expected = format!("two {serves}\n  a\n  c\none {serves}\n  b\n");
        assert!(text.contains(&expected), "{text}");
        assert_eq!(text.matches(serves).count(), 2, "{text}");
    }

    #[test]
    fn other_machines_get_an_address_that_they_can_dial() {
        let text = banner().text();
        assert!(text.contains("start with --listen 0.0.0.0:9178"), "{text}");
        assert!(text.contains("then `warren invite`"), "{text}");
        let urls = ["http://127.0.0.1:9178", "http://192.168.1.5:9178"].map(str::to_owned).to_vec();
        let reached =
            || Banner { only_here: false, invitation: Some("WARRENABC".into()), ..banner() };
        let text = Banner { urls, ..reached() }.text();
        assert!(text.contains("  warren join WARRENABC\n"), "{text}");
        assert!(text.contains("reach it at http://192.168.1.5:9178"), "{text}");
        assert!(!text.contains("0.0.0.0") && !text.contains("--listen"), "{text}");
        let text = reached().text();
        assert!(text.contains("this machine's address, port 9178"), "{text}");
        let urls = vec!["http://10.0.0.7:1".to_owned()];
        let text = Banner { urls, ..reached() }.text();
        assert!(text.contains("reach it at http://10.0.0.7:1"), "{text}");
    }

    #[test]
    fn a_secret_is_shown_when_it_is_made_and_its_place_afterwards() {
        let text = banner().text();
        assert!(text.contains("the key       wk_1\n"), "{text}");
        assert!(
            text.contains("kept in /d/client.token") && text.contains("in /d/worker.secret"),
            "{text}"
        );
        let given =
            Banner { client_key: Some(SecretSource::Given), needs_key: true, ..banner() }.text();
        assert!(given.contains("the key       that this server was started with"), "{given}");
        assert!(given.contains("Bearer $KEY") && given.contains("the key below"), "{given}");
    }
}
