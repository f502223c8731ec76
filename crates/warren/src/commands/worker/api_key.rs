//! A backend's API key: from the file of settings, the environment, or a file of its own.

use anyhow::{Context, bail};
use base::Secret;
use daemon::options::BackendOptions;
use worker::key_file;

/// The key that the options name, if they name one.
pub(super) fn of(options: &BackendOptions) -> anyhow::Result<Option<Secret>> {
    let BackendOptions { api_key, api_key_env, api_key_file, .. } = options;
    match (api_key, api_key_env, api_key_file) {
        (None, None, None) => Ok(None),
        (Some(key), None, None) => daemon::settings::secret(Some(key.clone()), "api-key"),
        (None, Some(name), None) => of_environment(name).map(Some),
        (None, None, Some(path)) => Ok(Some(key_file::read(path)?)),
        _ => bail!("a backend has one key: write api_key, api_key_env or api_key_file"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the settings name the variable")]
fn of_environment(name: &str) -> anyhow::Result<Secret> {
    let value = std::env::var(name).ok();
    let value = value.with_context(|| {
        format!("api_key_env names the variable {name}, which is not set where Warren runs")
    })?;
    let key = Secret::from(value.trim()).usable();
    key.map_err(|why| anyhow::anyhow!("the key in the variable {name} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_one_key_and_what_is_missing_is_named() {
        let options =
            BackendOptions { api_key_env: Some("WARREN_NO_SUCH".into()), ..Default::default() };
        let error = of(&options).unwrap_err().to_string();
        assert!(error.contains("WARREN_NO_SUCH"), "{error}");
        let two = BackendOptions { api_key: Some("k".into()), ..options };
        assert!(of(&two).unwrap_err().to_string().contains("one key"));
        let file =
            BackendOptions { api_key_file: Some("/nowhere.key".into()), ..Default::default() };
        assert!(of(&file).unwrap_err().to_string().contains("/nowhere.key"));
        assert_eq!(of(&BackendOptions::default()).unwrap().map(|_| ()), None);
    }
}
