//! Which models are served now, by which names, and since when.

use std::collections::BTreeMap;

use base::{ModelName, Scope};
use rooms::Room;

use crate::{
    aliases::{Alias, Aliases},
    state::Api,
};

/// The models of a room's connected participants, each with the time when the first of them joined,
/// in seconds since 1970.
pub(crate) fn served_in(room: &Room) -> BTreeMap<ModelName, u64> {
    let mut served = BTreeMap::new();
    for participant in room.participants() {
        if !participant.connection.connected {
            continue;
        }
        let models = std::iter::once(participant.model).chain(participant.models);
        for model in models {
            served.entry(ModelName::from(model)).or_insert(participant.joined_at / 1000);
        }
    }
    served
}

/// All models and aliases that a request may name now, each with the time when it was first seen.
pub(crate) fn served(api: &Api) -> BTreeMap<ModelName, u64> {
    let models = api.scheduler().models(&Scope::server());
    let aliases = api.aliases();
    let models = models.into_iter().filter(|model| aliases.get(model).is_none());
    let models = models.map(|model| (created(api, &model), model));
    let aliases = aliases.iter();
    let aliases = aliases.filter_map(|(name, _)| Some((served_since(api, name)?, name.clone())));
    models.chain(aliases).map(|(created, model)| (model, created)).collect()
}

/// When a model was first seen, in seconds since 1970; for an alias, the first of its targets that is served now.
/// `None` when no provider serves the name now.
pub(crate) fn served_since(api: &Api, name: &ModelName) -> Option<u64> {
    let scope = Scope::server();
    let is_served = |model: &ModelName| api.scheduler().serves(&scope, model);
    let aliases = api.aliases();
    let model = match aliases.get(name) {
        Some(alias) => {
            let mut targets = alias.targets.iter().map(|target| known_as(api, &scope, target));
            targets.find(is_served)
        }
        None => Some(known_as(api, &scope, name)).filter(is_served),
    };
    model.map(|model| created(api, &model))
}

/// The alias of this name, or of its [other](ModelName::with_or_without_latest) one if no model is served by
/// exactly this name.
pub(crate) fn alias_of<'a>(
    api: &Api,
    aliases: &'a Aliases,
    name: &ModelName,
) -> Option<(&'a ModelName, &'a Alias)> {
    aliases.named(name).or_else(|| {
        // Most servers have no aliases: the scheduler need not be asked about the name.
        if aliases.is_empty() {
            return None;
        }
        let is_model = api.scheduler().serves(&Scope::server(), name);
        aliases.named(&name.with_or_without_latest().filter(|_| !is_model)?)
    })
}

/// The name by which a model is served: the given name, its [other](ModelName::with_or_without_latest) form, or for a
/// path the [file's](ModelName::file_name) name. If none of them is served now, the form that was served before, else
/// the given name.
pub(crate) fn known_as(api: &Api, scope: &Scope, model: &ModelName) -> ModelName {
    let is_served = |model: &ModelName| api.scheduler().serves(scope, model);
    let was_served = |model: &ModelName| api.models().knows(scope, model);
    // An alias hides a model of the same name.
    let aliases = api.aliases();
    let is_model = |name: &ModelName| aliases.get(name).is_none();
    let other = || model.with_or_without_latest().filter(is_model);
    if is_served(model) {
        return model.clone();
    }
    let of_file = || model.file_name().filter(is_model).filter(is_served);
    let served = other().filter(is_served).or_else(of_file);
    served
        .or_else(|| other().filter(was_served).filter(|_| !was_served(model)))
        .unwrap_or_else(|| model.clone())
}

/// Whether a model, or a target of an alias, was served before.
pub(crate) fn has_served(api: &Api, name: &ModelName) -> bool {
    let scope = Scope::server();
    let knows = |model: &ModelName| api.models().knows(&scope, &known_as(api, &scope, model));
    match api.aliases().get(name) {
        Some(alias) => alias.targets.iter().any(knows),
        None => knows(name),
    }
}

/// Where a model was last seen before it was removed.
pub(crate) fn gone_from(api: &Api, name: &ModelName) -> Option<String> {
    api.models().gone_from(&Scope::server(), name)
}

/// When the model was first seen, in seconds since 1970.
fn created(api: &Api, model: &ModelName) -> u64 {
    api.models().first_seen(&Scope::server(), model).unwrap_or_default()
}
