//! `GET /admin/config`: the settings with which a server runs, and where each is from. `POST /admin/config/reload`:
//! reads them again.

use std::collections::BTreeMap;

use api::{Api, ApiError, admin, error::Kind};
use axum::{
    Json, Router,
    extract::{Request, State},
    routing::{get, post},
};
use clap::{ArgMatches, Args, Command, parser::ValueSource};
use http::StatusCode;
use protocol::admin::config::{ConfigJson, Reloaded, SettingJson, SettingSource};
use serde_json::Value;

use crate::{
    options::{
        ConfigFile, flag_ids,
        listed::{ListedSetting, Setting, list},
    },
    reload::Reloading,
};

/// The path of the configuration.
const PATH: &str = "/admin/config";

/// The path by which the configuration is reloaded.
const RELOAD: &str = "/admin/config/reload";

/// The longest body of a request to reload, in bytes. Its content is ignored.
const LONGEST: usize = 1024;

/// The setting that `--mesh-share` and the word `share` in the file set, and the setting of the table `share` that
/// means the same.
const SHARE: (&str, &str) = ("mesh.share", "mesh.share.with");

/// The values of settings that nobody has set, by name.
pub type Defaults = BTreeMap<String, Value>;

/// The settings of a server as they were given, with marks that tell two values of a secret apart.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// The settings, without the values of secrets.
    pub(crate) json: ConfigJson,
    /// The marks of secrets, by the setting's name.
    pub(crate) marks: BTreeMap<String, u64>,
}

/// A setting of a server, and the mark of a secret.
#[derive(Debug, Clone)]
pub struct MarkedSetting {
    json: SettingJson,
    mark: Option<u64>,
}

/// The origins of settings: the file, and the flags and variables that the command line has read.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    file: ConfigFile,
    given: BTreeMap<String, SettingSource>,
}

impl Origins {
    /// The origins of a command's settings. `found`: the parsed arguments of that command.
    pub fn new(file: &ConfigFile, found: &ArgMatches) -> Self {
        let source = |id: &str| match found.value_source(id) {
            Some(ValueSource::CommandLine) => Some(SettingSource::Flag),
            Some(ValueSource::EnvVariable) => Some(SettingSource::Environment),
            _ => None,
        };
        let ids = found.ids().map(clap::Id::as_str);
        let given = ids.filter_map(|id| Some((id.to_owned(), source(id)?))).collect();
        Self { file: file.clone(), given }
    }

    /// The origins of the same command's settings, with another file.
    #[must_use]
    pub fn with_file(&self, file: &ConfigFile) -> Self {
        Self { file: file.clone(), given: self.given.clone() }
    }

    /// The settings of a section. `section` is its name, which is empty for the top of the file. `options`: flags,
    /// environment and file together.
    pub fn settings<T: Args + Setting>(
        &self,
        section: &str,
        options: &T,
        defaults: &Defaults,
    ) -> Vec<MarkedSetting> {
        let command = T::augment_args(Command::new("settings"));
        let given = |name: &str| self.given(section, name, &command);
        let mut all = list(section, options);
        let shares = take_share(&mut all).zip(given(SHARE.0));
        let marked = all.into_iter().map(|listed| match &shares {
            Some((value, source)) if listed.name == SHARE.1 => {
                setting(ListedSetting { value: Some(value.clone()), ..listed }, *source, defaults)
            }
            _ => {
                let source = given(&listed.name).unwrap_or_else(|| self.in_file(&listed.name));
                setting(listed, source, defaults)
            }
        });
        marked.collect()
    }

    /// All settings of a server.
    pub fn configuration(&self, settings: Vec<MarkedSetting>) -> Configuration {
        let file = self.file.path.as_ref().map(|path| path.display().to_string());
        let marked =
            settings.iter().filter_map(|setting| Some((setting.json.name.clone(), setting.mark?)));
        let marks = marked.collect();
        let settings = settings.into_iter().map(|setting| setting.json).collect();
        Configuration { json: ConfigJson { file, settings }, marks }
    }

    /// Whether a setting is from its flag or its environment variable; `None` if it is from neither.
    fn given(&self, section: &str, name: &str, command: &Command) -> Option<SettingSource> {
        let ids = flag_ids(section, name)?;
        let id = ids.iter().find(|id| command.get_arguments().any(|arg| arg.get_id() == *id));
        self.given.get(id?).copied()
    }

    /// The source of a setting that neither a flag nor the environment has set: the file or the default.
    fn in_file(&self, name: &str) -> SettingSource {
        let (names, name) = (&self.file.names, name.replace('-', "_"));
        // A table may be the value of one setting.
        let below = format!("{name}.");
        let has_table =
            names.range(below.clone()..).next().is_some_and(|it| it.starts_with(&below));
        let is_word = name == SHARE.1 && names.contains(SHARE.0);
        match names.contains(&name) || has_table || is_word {
            true => SettingSource::File,
            false => SettingSource::Default,
        }
    }
}

pub(crate) fn router(api: Api, reloading: Reloading) -> Router {
    let routes = Router::new().route(PATH, get(show)).route(RELOAD, post(reload));
    routes.with_state((api, reloading))
}

async fn show(
    State((api, reloading)): State<(Api, Reloading)>,
    request: Request,
) -> Result<Json<ConfigJson>, ApiError> {
    admin::operator(&api, request.headers())?;
    Ok(Json(reloading.settings().configuration.json.clone()))
}

async fn reload(
    State((api, reloading)): State<(Api, Reloading)>,
    request: Request,
) -> Result<Json<Reloaded>, ApiError> {
    let (operator, _nothing) = admin::posted(&api, request, LONGEST).await?;
    let reloaded = reloading.reload().await.map_err(|error| {
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, format!("{error:#}"))
    });
    operator.record(&api, "reload", "configuration", &reloaded).await;
    Ok(Json(reloaded?))
}

/// Removes the setting [`SHARE`] of the command line, and returns its value.
fn take_share(all: &mut Vec<ListedSetting>) -> Option<Value> {
    let place = all.iter().position(|listed| listed.name == SHARE.0)?;
    all.remove(place).value
}

fn setting(listed: ListedSetting, source: SettingSource, defaults: &Defaults) -> MarkedSetting {
    let ListedSetting { name, value, secret, mark } = listed;
    let default = || defaults.get(&of_table(&name)).cloned().unwrap_or_default();
    let value = value.unwrap_or_else(default);
    MarkedSetting { json: SettingJson { name, value, source, secret }, mark }
}

/// A name without positions in lists: the defaults are the same at each position.
fn of_table(name: &str) -> String {
    let is_place = |part: &&str| part.parse::<usize>().is_err();
    name.split('.').filter(is_place).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::{ServeOptions, Settings};

    #[derive(Parser)]
    struct Serve {
        #[command(flatten)]
        options: ServeOptions,
    }

    /// The settings of a server with this file and these flags.
    fn settings(file: &str, flags: &[&str]) -> Vec<SettingJson> {
        let file = ConfigFile::parse(file).unwrap();
        let command = <Serve as clap::CommandFactory>::command();
        let found = command.get_matches_from(["serve"].iter().chain(flags));
        let flags = <Serve as clap::FromArgMatches>::from_arg_matches(&found).unwrap().options;
        let options = flags.or(file.serve.clone());
        let server = ServeOptions { data_dir: Some("/data".into()), ..options.clone() };
        let defaults = Settings::new(server, false).unwrap().values();
        let settings = Origins::new(&file, &found).settings("", &options, &defaults);
        settings.into_iter().map(|setting| setting.json).collect()
    }

    #[track_caller]
    fn assert_setting(all: &[SettingJson], name: &str, value: &Value, source: SettingSource) {
        let found = all.iter().find(|setting| setting.name == name).expect(name);
        assert_eq!((&found.value, found.source), (value, source), "{name}");
    }

    #[test]
    fn each_setting_says_where_it_is_from() {
        let all = settings(
            "max-queue-len = 7\nlog = 'debug'\n[workspace.agents]\nmodel = 'm'\n[mesh]\nname = 'a'",
            &["--log", "warn", "--mesh-route", "mesh"],
        );
        for (name, value, source) in [
            ("max_queue_len", json!(7), SettingSource::File),
            ("log", json!("warn"), SettingSource::Flag),
            ("mesh.route", json!("mesh"), SettingSource::Flag),
            ("mesh.name", json!("a"), SettingSource::File),
            ("workspace.agents.model", json!("m"), SettingSource::File),
            ("workspace.agents.use_gateway", json!(false), SettingSource::Default),
            ("queue_timeout_secs", json!(30), SettingSource::Default),
            ("tls_cert", Value::Null, SettingSource::Default),
        ] {
            assert_setting(&all, name, &value, source);
        }
    }

    #[test]
    fn sharing_is_one_setting_however_it_is_written() {
        let with = |file: &str, flags: &[&str]| settings(file, flags);
        let name = SHARE.1;
        assert_setting(&with("", &[]), name, &json!("off"), SettingSource::Default);
        let word = with("[mesh]\nshare = 'peers'", &[]);
        assert_setting(&word, name, &json!("peers"), SettingSource::File);
        let table = with("[mesh.share]\nwith = 'peers'\njobs = 2", &["--mesh-share", "anyone"]);
        assert_setting(&table, name, &json!("anyone"), SettingSource::Flag);
        assert_setting(&table, "mesh.share.jobs", &json!(2), SettingSource::File);
        assert!(table.iter().all(|setting| setting.name != SHARE.0));
    }

    #[test]
    fn a_server_without_settings_tells_its_defaults_once_each() {
        let all = settings("", &[]);
        assert!(
            all.iter().all(|setting| setting.source == SettingSource::Default && !setting.secret)
        );
        let mut names: Vec<&str> = all.iter().map(|setting| setting.name.as_str()).collect();
        assert!(names.len() > 70, "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
