//! Chooses the files and their sources: several peers may have different files under one name.

use std::{collections::HashMap, sync::Arc, time::Duration};

use models::Manifest;
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    Failure,
    find::{ModelForm, Source},
    run::{BACK_WITHIN, PullTask},
};
use crate::link::Link;

/// The time limit for finding a peer that has the model.
pub(super) const FOUND_WITHIN: Duration = Duration::from_secs(10);

/// How long the other peers may take to send their manifests after the first one has.
const GRACE: Duration = Duration::from_secs(2);

/// The chosen files and their sources.
pub(super) enum Choice {
    Pieces(Arc<Manifest>),
    Plain(Arc<Link>, u64),
}

impl PullTask {
    /// The files of earlier pulls of this model that were interrupted.
    pub(super) async fn find_unfinished(&mut self) -> Vec<[u8; 32]> {
        let (store, model) = (self.shared.shelf.store().to_owned(), self.job.model.clone());
        let look = move || {
            let unfinished = models::arrival::unfinished(&store);
            unfinished.iter().filter(|it| *it.id() == model).map(Manifest::digest).collect()
        };
        spawn_blocking(look).await.unwrap_or_default()
    }

    /// Searches until the files and their sources are chosen.
    pub(super) async fn choose(&mut self) -> Result<Choice, Failure> {
        let (began, mut first) = (Instant::now(), None);
        loop {
            self.finder.ask_all(|_, _| false);
            self.found.retain(|found| !found.link.is_closed());
            let is_late = |since: Option<Instant>| since.is_some_and(|at| at.elapsed() >= GRACE);
            if let Some(choice) = self.decide(is_late(first), began.elapsed() >= FOUND_WITHIN) {
                return Ok(choice);
            }
            if self.finder.is_idle() && began.elapsed() >= self.patience() {
                return Err(self.not_found());
            }
            self.show_search();
            tokio::select! {
                biased;
                found = self.finder.next() => {
                    if matches!(found.form, ModelForm::Pieces(_)) {
                        first.get_or_insert_with(Instant::now);
                    }
                    self.keep(found);
                }
                _ = self.events.recv() => {}
                _ = self.tick.tick() => {}
            }
        }
    }

    /// How long it searches before it fails.
    fn patience(&self) -> Duration {
        let waits = match &self.last {
            Some(failure) => failure.code == "lost",
            None => !self.unfinished.is_empty(),
        };
        if waits { BACK_WITHIN } else { FOUND_WITHIN }
    }

    fn not_found(&mut self) -> Failure {
        let none = || {
            let model = &self.job.model;
            match &self.job.from {
                Some(from) if self.finder.is_barred(from) => {
                    let from = from.short();
                    format!(
                        "{from} has not proved the passcode and is not trusted: it is asked nothing"
                    )
                }
                Some(from) => {
                    format!("{} does not pass on {model}, or is not linked", from.short())
                }
                None => format!("no peer that is linked passes on {model}"),
            }
        };
        self.last.take().unwrap_or_else(|| Failure::new("not_found", none()))
    }

    /// Chooses among the peers that have answered. The files of an interrupted pull are preferred;
    /// otherwise the files that most peers list are taken. The plain form has no hashes, so it is
    /// taken only when no other peer is left to answer, or the time limit is reached.
    fn decide(&self, grace_is_over: bool, plain_now: bool) -> Option<Choice> {
        let pieces = |found: &Source| match &found.form {
            ModelForm::Pieces(manifest) => Some(Arc::clone(manifest)),
            ModelForm::Plain(_) => None,
        };
        let manifests: Vec<_> = self.found.iter().filter_map(pieces).collect();
        let is_unfinished = |it: &&Arc<Manifest>| self.unfinished.contains(&it.digest());
        if let Some(manifest) = manifests.iter().find(is_unfinished) {
            return Some(Choice::Pieces(Arc::clone(manifest)));
        }
        let all_have_answered = self.finder.is_idle();
        if !manifests.is_empty() {
            let most =
                (all_have_answered || grace_is_over).then(|| most_common(&manifests)).flatten();
            return most.map(Choice::Pieces);
        }
        let plain = |found: &Source| match found.form {
            ModelForm::Plain(total) => Some(Choice::Plain(Arc::clone(&found.link), total)),
            ModelForm::Pieces(_) => None,
        };
        self.found.iter().find_map(plain).filter(|_| all_have_answered || plain_now)
    }

    pub(super) fn keep(&mut self, found: Source) {
        self.found.retain(|other| other.link.peer != found.link.peer);
        self.found.push(found);
    }

    fn show_search(&self) {
        let state = match (self.finder.waits_for_hashes(), &self.last) {
            (true, _) => "preparing",
            (false, Some(_)) => "waiting",
            (false, None) => "searching",
        };
        self.job.show(|transfer| state.clone_into(&mut transfer.state));
    }
}

/// The manifest that most peers list; among equals the one that came first.
fn most_common(manifests: &[Arc<Manifest>]) -> Option<Arc<Manifest>> {
    let mut counts: HashMap<[u8; 32], usize> = HashMap::new();
    manifests.iter().for_each(|it| *counts.entry(it.digest()).or_default() += 1);
    let count = |it: &&Arc<Manifest>| counts.get(&it.digest()).copied();
    // `max_by_key` returns the last of equals. The order is reversed, so that is the first one
    // here.
    manifests.iter().rev().max_by_key(count).cloned()
}

#[cfg(test)]
mod tests {
    use models::{FileName, ManifestFile, ModelId};

    use super::*;

    fn manifest(root: u8) -> Result<Arc<Manifest>, models::ManifestError> {
        let name = FileName::try_from("a").unwrap();
        let file = ManifestFile { name, size: 1, root: [root; 32] };
        Manifest::new(ModelId::try_from("m").unwrap(), vec![file]).map(Arc::new)
    }

    #[test]
    fn the_files_that_most_peers_list_are_taken_and_of_equal_ones_the_first() {
        let [a, b, c] = [1, 2, 3].map(|root| manifest(root).unwrap());
        let all = |of: &[&Arc<Manifest>]| {
            most_common(&of.iter().map(|it| Arc::clone(it)).collect::<Vec<_>>())
        };
        assert_eq!(all(&[&a, &b, &c, &b]), Some(Arc::clone(&b)));
        assert_eq!(all(&[&c, &a, &b]), Some(c));
        assert_eq!(all(&[]), None);
    }
}
