//! Which models fit into memory together, and which have to go for another one.

use std::{collections::BTreeMap, sync::Arc};

use super::{Refusal, Rules, model::Model};
use crate::{memory::Memory, model::Group};

type Models = BTreeMap<Arc<str>, Model>;

/// The conditions of a load.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It may begin.
    Room,
    /// It may begin once these models are unloaded.
    After(Vec<Arc<str>>),
    /// It would take memory that is promised to an earlier load.
    Behind,
    /// It cannot begin.
    Never(Refusal),
}

/// The memory that loads earlier in the queue have been promised.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Models that will be loaded.
    promised: Vec<Arc<str>>,
    /// Models that are unloaded for them.
    leaving: Vec<Arc<str>>,
}

impl Present {
    /// Keeps memory for a load that waits until the `leaving` models are unloaded.
    pub(super) fn promise(&mut self, name: &Arc<str>, leaving: &[Arc<str>]) {
        self.promised.push(Arc::clone(name));
        self.leaving.extend_from_slice(leaving);
    }

    /// The conditions of a model's load, after the loads that come before it in the queue.
    pub(super) fn plan(&self, models: &Models, name: &Arc<str>, rules: &Rules) -> Plan {
        let Some(model) = models.get(name) else { return Plan::Behind };
        let need = model.spec.need;
        if need.total() > rules.limit.total() {
            return Plan::Never(Refusal::TooLarge { need, limit: rules.limit });
        }
        let loaded: Vec<&Arc<str>> =
            models.iter().filter(|(_, model)| model.is_present()).map(|(name, _)| name).collect();
        let with = |others: &[&Arc<str>]| fits(models, others.iter().copied().chain([name]), rules);
        if self.promised.is_empty() {
            return match with(&loaded) {
                true => Plan::Room,
                false => plan_leaving(models, name, &loaded, rules),
            };
        }
        let staying = loaded.iter().copied().filter(|name| !self.leaving.contains(name));
        let later: Vec<&Arc<str>> = staying.chain(&self.promised).collect();
        if with(&loaded) && with(&later) { Plan::Room } else { Plan::Behind }
    }
}

/// Which of the loaded models have to go for a model.
fn plan_leaving(models: &Models, name: &Arc<str>, loaded: &[&Arc<str>], rules: &Rules) -> Plan {
    let is_kept = |other: &Arc<str>| models.get(other).is_some_and(Model::is_kept);
    let (kept, mut rest): (Vec<&Arc<str>>, Vec<&Arc<str>>) =
        loaded.iter().copied().partition(|other| is_kept(other));
    if !fits(models, kept.iter().copied().chain([name]), rules) {
        let need = models.get(name).map(|model| model.spec.need).unwrap_or_default();
        let kept = kept.iter().map(|name| &***name).collect::<Vec<_>>().join(", ");
        return Plan::Never(Refusal::Kept { need, kept });
    }
    // From the most to the least worth keeping: each model stays if it fits beside those that stay
    // already.
    rest.sort_by_key(|other| models.get(*other).map(|model| (!model.is_stopping(), model.worth())));
    let mut staying = kept;
    let mut leaving = Vec::new();
    for other in rest.into_iter().rev() {
        staying.push(other);
        if !fits(models, staying.iter().copied().chain([name]), rules) {
            staying.pop();
            leaving.push(Arc::clone(other));
        }
    }
    Plan::After(leaving)
}

/// Whether these may be loaded together.
fn fits<'a>(models: &Models, names: impl Iterator<Item = &'a Arc<str>>, rules: &Rules) -> bool {
    let together: Vec<&Model> = names.filter_map(|name| models.get(name)).collect();
    let sum: Memory = together.iter().map(|model| model.spec.need).sum();
    let groups = || together.iter().map(|model| model.spec.group.as_ref());
    let exclude = |(number, one): (usize, Option<&Group>)| {
        groups().skip(number + 1).any(|other| Group::exclude(one, other))
    };
    (together.len() <= 1 || rules.budget.holds(sum)) && !groups().enumerate().any(exclude)
}
