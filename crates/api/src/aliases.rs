//! Names that stand for models. The models of one name are tried in order of preference.

use std::collections::BTreeMap;

use base::ModelName;
use protocol::openai::{Defaults, MAX_MODEL_NAME, Reserved};
use serde_json::Value;

/// The most models that one name may stand for.
pub const MAX_TARGETS: usize = 16;

/// The models of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The models that serve it, in order of preference. Not empty.
    pub targets: Vec<ModelName>,
    /// Parameters for requests that do not set them.
    pub defaults: Defaults,
}

/// All names that stand for others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases(BTreeMap<ModelName, Alias>);

/// Why aliases are refused, for the author of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAlias {
    /// A name or a target is not a valid model name.
    #[error(
        "{0:?} is no model's name: it must have between 1 and {MAX_MODEL_NAME} bytes, and not be `*`"
    )]
    Name(String),
    /// The alias has no target.
    #[error("[models.\"{0}\"] names no model: give it targets = [\"MODEL\", …]")]
    NoTarget(ModelName),
    /// The alias has too many targets.
    #[error("[models.\"{0}\"] has more than {MAX_TARGETS} targets")]
    TooManyTargets(ModelName),
    /// One of the alias's targets is an alias itself.
    #[error(
        "[models.\"{alias}\"] has the target \"{target}\", which is an alias itself: name its models instead"
    )]
    Nested {
        /// The alias.
        alias: ModelName,
        /// Its target that is an alias, too.
        target: ModelName,
    },
    /// The alias has a default for a parameter that only a request may set.
    #[error("in the defaults of [models.\"{alias}\"]: {reserved}")]
    Default {
        /// The alias.
        alias: ModelName,
        /// The parameter.
        reserved: Reserved,
    },
}

impl Aliases {
    /// Aliases by name, each with its targets and its defaults.
    ///
    /// # Errors
    /// [`BadAlias`] for the first invalid alias.
    pub fn new<Parameters: IntoIterator<Item = (String, Value)>>(
        aliases: impl IntoIterator<Item = (String, Vec<String>, Parameters)>,
    ) -> Result<Self, BadAlias> {
        let named = aliases.into_iter().map(|(name, targets, defaults)| {
            let name = model(name)?;
            let alias = Alias::new(&name, targets, defaults)?;
            Ok((name, alias))
        });
        let aliases = Self(named.collect::<Result<_, _>>()?);
        aliases.refuse_nesting()?;
        Ok(aliases)
    }

    /// The alias of this name. It hides a model of the same name.
    pub fn get(&self, name: &ModelName) -> Option<&Alias> {
        self.0.get(name)
    }

    /// The alias of this name, together with the stored name.
    pub fn named(&self, name: &ModelName) -> Option<(&ModelName, &Alias)> {
        self.0.get_key_value(name)
    }

    /// Whether there are no aliases.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All aliases, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ModelName, &Alias)> {
        self.0.iter()
    }

    fn refuse_nesting(&self) -> Result<(), BadAlias> {
        for (name, alias) in &self.0 {
            if let Some(target) = alias.targets.iter().find(|target| self.0.contains_key(*target)) {
                return Err(BadAlias::Nested { alias: name.clone(), target: target.clone() });
            }
        }
        Ok(())
    }
}

impl Alias {
    fn new(
        name: &ModelName,
        targets: Vec<String>,
        defaults: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, BadAlias> {
        match targets.len() {
            0 => return Err(BadAlias::NoTarget(name.clone())),
            len if len > MAX_TARGETS => return Err(BadAlias::TooManyTargets(name.clone())),
            _ => {}
        }
        let defaults = Defaults::new(defaults)
            .map_err(|reserved| BadAlias::Default { alias: name.clone(), reserved })?;
        Ok(Self { targets: targets.into_iter().map(model).collect::<Result<_, _>>()?, defaults })
    }
}

fn model(name: String) -> Result<ModelName, BadAlias> {
    let is_name = !name.trim().is_empty() && name.len() <= MAX_MODEL_NAME && name != "*";
    if is_name { Ok(ModelName::from(name)) } else { Err(BadAlias::Name(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parameters = Vec<(String, Value)>;

    /// Names, each with its targets.
    type List<'a> = &'a [(&'a str, &'a [&'a str])];

    fn aliases(list: List<'_>) -> Result<Aliases, BadAlias> {
        Aliases::new(list.iter().map(|(name, targets)| {
            let targets = targets.iter().map(|&target| target.to_owned()).collect();
            ((*name).to_owned(), targets, Parameters::new())
        }))
    }

    #[test]
    fn a_name_stands_for_models_in_order() {
        let aliases = aliases(&[("fast", &["b", "a"])]).unwrap();
        assert_eq!(aliases.get(&"fast".into()).unwrap().targets, ["b".into(), "a".into()]);
        assert_eq!(aliases.get(&"b".into()), None);
    }

    #[test]
    fn an_alias_that_could_never_be_served_is_refused() {
        let long = "m".repeat(MAX_MODEL_NAME + 1);
        let many = vec!["m"; MAX_TARGETS + 1];
        let refused: [(List<'_>, &str); 8] = [
            (&[("fast", &[])], "names no model"),
            (&[("", &["m"])], "no model's name"),
            (&[("*", &["m"])], "no model's name"),
            (&[("fast", &[" "])], "no model's name"),
            (&[("fast", &[&long])], "no model's name"),
            (&[("fast", &many)], "more than 16"),
            (&[("fast", &["fast"])], "an alias itself"),
            (&[("fast", &["m", "good"]), ("good", &["m"])], "an alias itself"),
        ];
        for (list, words) in refused {
            let error = aliases(list).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_default_for_the_requests_own_is_refused_by_name() {
        let defaults = [("stream".to_owned(), Value::Bool(true))];
        let error =
            Aliases::new([("fast".to_owned(), vec!["m".to_owned()], defaults)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "in the defaults of [models.\"fast\"]: `stream` can have no default: it is the request's own"
        );
    }
}
