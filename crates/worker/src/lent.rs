//! One backend, shared by the links to all servers.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use backend::{Answer, Backend, BackendError, BackendRequest, ModelEntry, NotABackend};
use base::{Endpoints, FactsByModel, ModelName};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use protocol::{
    multipart::{Boundary, is_form, renamed},
    openai,
};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use traces::Traces;

use crate::{
    config::{Lend, LentAlias},
    offered::OfferedNames,
    ollama::{self, Translation},
    order::Order,
    patience,
};

/// The offer of a backend to servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    /// The models, by the names that consumers use.
    pub(crate) models: Arc<[String]>,
    /// The endpoints that it serves; `None` while they are unknown.
    pub(crate) endpoints: Option<Endpoints>,
    /// Whether the backend itself gave this list when it was last asked.
    pub(crate) reached: bool,
    /// The facts that the backend reports about its models, by name.
    pub(crate) facts: Arc<FactsByModel>,
    /// How often the backend has been asked so far.
    pub(crate) polls: u64,
    /// How often it has had room again after being full; counted only while several links share it.
    pub(crate) eased: u64,
}

impl Offer {
    /// Whether this offer has nothing to tell a server that knows the announced one.
    pub(crate) fn is_as_announced(&self, announced: &Self) -> bool {
        let is_empty_list = |offer: &Self| offer.models.is_empty() && offer.reached;
        self.models == announced.models
            && self.endpoints == announced.endpoints
            && self.facts == announced.facts
            && is_empty_list(self) == is_empty_list(announced)
    }
}

/// One backend, and what all its links share: its slots, its load and its offer.
#[derive(Debug)]
pub(crate) struct LentBackend {
    backend: Backend,
    max_concurrent: u32,
    patience: Duration,
    slots: Arc<Semaphore>,
    load: AtomicU32,
    answered: AtomicU64,
    answer_bytes: AtomicU64,
    /// Whether a job did not reach the backend since [`LentBackend::was_lost`] was last called.
    lost: AtomicBool,
    /// The models to offer; `None`: all that the backend lists.
    entries: Option<Vec<ModelEntry>>,
    /// Whether to offer only those entries that the backend lists.
    only_listed: bool,
    /// The backend's own names of models that are offered under another name.
    real_names: RwLock<HashMap<String, String>>,
    aliases: Arc<[LentAlias]>,
    offer: watch::Sender<Offer>,
    refresh: Notify,
    traces: Option<Traces>,
}

impl LentBackend {
    pub(crate) fn new(
        lend: &Lend,
        aliases: Arc<[LentAlias]>,
        patience: Duration,
    ) -> Result<Self, NotABackend> {
        let (backend, max_concurrent, entries, only_listed) = match lend {
            Lend::Http(config) => {
                let entries = config.models.clone();
                (Backend::http(config)?, config.max_concurrent, entries, config.only_listed)
            }
            Lend::Demo(config) => (Backend::demo(*config), config.max_concurrent, None, false),
            Lend::Engines(lend) => {
                (Backend::Engines(Arc::clone(&lend.engines)), lend.max_concurrent, None, false)
            }
        };
        // A backend with 0 slots would hold every job for ever.
        let max_concurrent = max_concurrent.max(1);
        let slots = (max_concurrent as usize).min(Semaphore::MAX_PERMITS);
        let real_names = entries.as_deref().map(OfferedNames::explicit).unwrap_or_default().real;
        Ok(Self {
            backend,
            max_concurrent,
            patience,
            slots: Arc::new(Semaphore::new(slots)),
            load: AtomicU32::new(0),
            answered: AtomicU64::new(0),
            answer_bytes: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            entries,
            only_listed,
            real_names: RwLock::new(real_names),
            aliases,
            offer: watch::Sender::default(),
            refresh: Notify::new(),
            traces: None,
        })
    }

    /// The same; spans of its traced jobs go to `traces`.
    pub(crate) fn traced_by(self, traces: Option<Traces>) -> Self {
        Self { traces, ..self }
    }

    /// The same, for the backend that `left` lent, which may not have ended its jobs: these keep their slots. Another
    /// number of slots is another backend.
    pub(crate) fn with_slots_of(mut self, left: &Self) -> Self {
        if left.max_concurrent == self.max_concurrent {
            self.slots = Arc::clone(&left.slots);
        }
        self
    }

    pub(crate) fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(crate) fn max_concurrent(&self) -> u32 {
        self.max_concurrent
    }

    /// Whether it offers exactly an explicit list, and never asks for the backend's.
    pub(crate) fn has_fixed_models(&self) -> bool {
        self.entries.is_some() && !self.only_listed
    }

    /// The models to offer now, by the names that consumers use.
    ///
    /// # Errors
    /// When the backend has to be asked, and gives no list.
    pub(crate) async fn models(&self) -> Result<Vec<String>, BackendError> {
        let offered = match &self.entries {
            Some(entries) if !self.only_listed => OfferedNames::explicit(entries),
            Some(entries) => OfferedNames::listed(entries, &self.backend.models().await?),
            None => OfferedNames::all(self.backend.models().await?),
        };
        let OfferedNames { names, real } = offered;
        // Compared under the read lock first: names change seldom, and a write lock would hold up
        // jobs, which all read them.
        if *self.real_names.read().unwrap_or_else(PoisonError::into_inner) != real {
            *self.real_names.write().unwrap_or_else(PoisonError::into_inner) = real;
        }
        Ok(names)
    }

    /// The names under which a backend with these models is offered: the models, then the aliases that one of
    /// them serves.
    pub(crate) fn names(&self, models: &[String]) -> Vec<String> {
        let serves = |alias: &&LentAlias| target(alias, models).is_some();
        let is_new = |alias: &&LentAlias| !models.contains(&alias.name);
        let aliases = self.aliases.iter().filter(serves).filter(is_new);
        models.iter().cloned().chain(aliases.map(|alias| alias.name.clone())).collect()
    }

    /// The backend's own name for a model, if it differs from the requested one.
    fn real_name(&self, name: &str) -> Option<String> {
        let alias = self.aliases.iter().find(|alias| alias.name == name);
        let offer = self.offer.borrow();
        // If no target is offered any more, the first one is asked for, so that the backend's own
        // error is the answer.
        let model = alias.and_then(|alias| target(alias, &offer.models).or(alias.targets.first()));
        let names = self.real_names.read().unwrap_or_else(PoisonError::into_inner);
        let real = names.get(model.map_or(name, String::as_str));
        real.or(model).filter(|real| *real != name).cloned()
    }

    /// Loads a model, by the name under which it is offered, or unloads it. Returns when that is done.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) async fn change_model(&self, model: &str, loads: bool) -> Result<(), String> {
        let Some(engines) = self.backend.engines() else {
            return Err("this worker does not load models itself".to_owned());
        };
        let real = self.real_name(model);
        let model = real.as_deref().unwrap_or(model);
        let done = if loads { engines.load(model).await } else { engines.unload(model).await };
        done.map_err(|error| base::error::chain(&error))
    }

    /// How many jobs it has, from all servers.
    pub(crate) fn load(&self) -> u32 {
        self.load.load(Ordering::Relaxed)
    }

    /// How many jobs were answered to their end so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// How many bytes of answers there were so far.
    pub(crate) fn answer_bytes(&self) -> u64 {
        self.answer_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.answer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_answer(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a job while the guard lives.
    pub(crate) fn count(self: &Arc<Self>) -> LoadGuard {
        self.load.fetch_add(1, Ordering::Relaxed);
        LoadGuard(Arc::clone(self))
    }

    /// Waits for a slot of the backend.
    pub(crate) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.slots.acquire().await.ok()
    }

    /// Whether a slot is free now.
    #[cfg(test)]
    pub(crate) fn has_slot(&self) -> bool {
        self.slots.available_permits() > 0
    }

    /// A receiver of the current offer and of each new one.
    pub(crate) fn offers(&self) -> watch::Receiver<Offer> {
        self.offer.subscribe()
    }

    /// Publishes an offer. `reached`: whether the backend has just given this list itself.
    pub(crate) fn publish(&self, models: &[String], endpoints: Option<Endpoints>, reached: bool) {
        self.offer.send_modify(|offer| {
            // The list is shared with each link: an equal one is not replaced.
            if *offer.models != *models {
                offer.models = models.into();
            }
            let facts = self.facts(models);
            if *offer.facts != facts {
                offer.facts = facts.into();
            }
            offer.endpoints = endpoints;
            offer.reached = reached;
            offer.polls += 1;
        });
    }

    /// Publishes the facts about the models of the last offer, if they have changed.
    pub(crate) fn publish_facts(&self) {
        self.offer.send_if_modified(|offer| {
            let facts = self.facts(&offer.models);
            let is_new = *offer.facts != facts;
            if is_new {
                offer.facts = facts.into();
            }
            is_new
        });
    }

    /// The facts that the backend reports about these models, by the names that consumers use.
    fn facts(&self, models: &[String]) -> FactsByModel {
        let reported = self.backend.facts();
        let real = self.real_names.read().unwrap_or_else(PoisonError::into_inner);
        let of = |name: &String| {
            let alias = self.aliases.iter().find(|alias| alias.name == *name);
            let model = alias.and_then(|alias| target(alias, models)).unwrap_or(name);
            let real = real.get(model).unwrap_or(model);
            let other = || ModelName::from(real.as_str()).with_or_without_latest();
            let facts = reported.get(real).or_else(|| reported.get(other()?.as_str()))?;
            Some((name.clone(), facts.clone()))
        };
        models.iter().filter_map(of).collect()
    }

    /// Makes the watch ask the backend for its models now.
    pub(crate) fn ask_to_refresh(&self) {
        self.refresh.notify_one();
    }

    pub(crate) async fn asked_to_refresh(&self) {
        self.refresh.notified().await;
    }

    /// Sends a request to the backend; see [`Backend::send`]. `patiently`: if it takes no requests, it is asked again
    /// for a while.
    pub(crate) async fn send(
        &self,
        order: &mut Order,
        patiently: bool,
    ) -> Result<Answer, BackendError> {
        let (request, translation) = match self.request(order) {
            Ok(request) => request,
            Err(refusal) => return Ok(*refusal),
        };
        let answer = match patiently {
            true => patience::until_ready(self.patience, || self.send_once(request.clone())).await,
            false => self.send_once(request).await,
        };
        Ok(match translation {
            Some(translation) => translation.answer(answer?, self.backend.label()),
            None => answer?,
        })
    }

    /// The request in the backend's own form. For an Ollama whose context is configured, and for a server that ranks
    /// texts, the request is in that server's own API, and the answer must be translated. An error is the answer to a
    /// request that cannot be translated.
    fn request(
        &self,
        order: &mut Order,
    ) -> Result<(BackendRequest, Option<Translation>), Box<Answer>> {
        let request = self.ask(order);
        if self.backend.ranks_texts() && ollama::ranks(&request.path_and_query) {
            let ranked = ollama::ranked(request, &order.model);
            return ranked.map(|(request, translation)| (request, Some(translation)));
        }
        let shape = ollama::shape(&request.path_and_query).filter(|_| order.method == Method::POST);
        let real = || self.real_name(&order.model).unwrap_or_else(|| order.model.clone());
        let Some((shape, num_ctx)) = shape.zip(self.backend.num_ctx(&real())) else {
            return Ok((request, None));
        };
        let translated = ollama::translated(shape, request, &order.model, num_ctx);
        translated.map(|(request, translation)| (request, Some(translation)))
    }

    async fn send_once(&self, request: BackendRequest) -> Result<Answer, BackendError> {
        let answer = self.backend.send(request).await;
        // If the backend restarts, either its port is still closed, or a running answer breaks off.
        if matches!(answer, Err(BackendError::Unreachable { .. } | BackendError::Broke { .. })) {
            self.lost.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Whether a job did not reach the backend since the last call.
    pub(crate) fn was_lost(&self) -> bool {
        self.lost.swap(false, Ordering::Relaxed)
    }

    fn ask(&self, order: &mut Order) -> BackendRequest {
        let body = std::mem::take(&mut order.body);
        let real = self.real_name(&order.model);
        BackendRequest {
            method: order.method.clone(),
            path_and_query: std::mem::take(&mut order.path),
            body: match &real {
                Some(real) => rename(body, &order.headers, real),
                None => body,
            },
            headers: std::mem::take(&mut order.headers),
            model: real.unwrap_or_else(|| order.model.clone()),
        }
    }
}

/// A backend in use by one job, which counts as load.
#[derive(Debug)]
pub(crate) struct LoadGuard(Arc<LentBackend>);

impl Deref for LoadGuard {
    type Target = LentBackend;

    fn deref(&self) -> &LentBackend {
        &self.0
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        let before = self.0.load.fetch_sub(1, Ordering::Relaxed);
        // The backend has room again. The job's own server knows; the other links must tell theirs.
        if before == self.0.max_concurrent && self.0.offer.receiver_count() > 1 {
            self.0.offer.send_modify(|offer| offer.eased += 1);
        }
    }
}

/// The first target of an alias that is among these models.
fn target<'a>(alias: &'a LentAlias, models: &[String]) -> Option<&'a String> {
    alias.targets.iter().find(|target| models.contains(target))
}

/// The body with its model replaced by `real`. A body without a model stays as it is, so that the
/// backend's own error is the answer.
fn rename(body: Vec<Bytes>, headers: &HeaderMap, real: &str) -> Vec<Bytes> {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if let Some(kind) = kind.filter(|kind| is_form(kind)) {
        let renamed = Boundary::of(kind).and_then(|boundary| renamed(&body, &boundary, real));
        return renamed.unwrap_or(body);
    }
    let whole = match <[Bytes; 1]>::try_from(body) {
        Ok([whole]) => whole,
        Err(pieces) => Bytes::from(pieces.concat()),
    };
    match openai::peek(&whole) {
        Ok(peek) => vec![openai::replace_model(&whole, peek.model_span, real)],
        Err(_) => vec![whole],
    }
}

#[cfg(test)]
mod tests {
    use backend::BackendConfig;

    use super::*;

    fn lent() -> LentBackend {
        let models = ["fast=llama3:8b", "same"].map(|entry| entry.parse().unwrap()).to_vec();
        let config =
            BackendConfig { models: Some(models), ..BackendConfig::new("http://127.0.0.1:1") };
        LentBackend::new(&Lend::Http(config), aliases(), Duration::ZERO).unwrap()
    }

    #[tokio::test]
    async fn a_backend_that_is_lent_again_has_no_more_slots_than_before() {
        let left = lent();
        let taken = left.slots.acquire_many(left.max_concurrent).await.unwrap();
        let again = lent().with_slots_of(&left);
        assert!(again.slots.try_acquire().is_err());
        drop(taken);
        assert!(again.slots.try_acquire().is_ok());
        let mut other = lent();
        other.max_concurrent += 1;
        assert!(!Arc::ptr_eq(&other.with_slots_of(&left).slots, &left.slots));
    }

    fn body(model: &str, pieces: &[&'static str]) -> String {
        let body = pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        let mut order = Order { model: model.to_owned(), body, ..Order::default() };
        String::from_utf8(lent().ask(&mut order).body.concat()).unwrap()
    }

    #[test]
    fn only_renamed_models_are_replaced_and_nothing_else_is_touched() {
        let renamed = r#"{ "x":1,"model" : "llama3:8b","messages":[ ]}"#;
        assert_eq!(body("fast", &[r#"{ "x":1,"mod"#, r#"el" : "fast","messages":[ ]}"#]), renamed);
        assert_eq!(body("same", &[r#"{"model":"same"}"#]), r#"{"model":"same"}"#);
        assert_eq!(body("fast", &["no json"]), "no json");
    }

    #[test]
    fn a_renamed_model_is_replaced_in_a_form_wherever_it_is_cut() {
        let form = |model: &str| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nmodel\r\n--b\r\n\
                 Content-Disposition: form-data; name=model\r\n\r\n{model}\r\n--b--\r\n"
            )
        };
        let (given, kind) = (Bytes::from(form("fast")), "multipart/form-data; boundary=b");
        for at in [0, 1, given.len() / 2, given.len() - 18, given.len() - 14, given.len()] {
            let body = vec![given.slice(..at), given.slice(at..)];
            let kind = HeaderValue::from_static(kind);
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
            let mut order = Order { model: "fast".to_owned(), body, headers, ..Order::default() };
            let sent = lent().ask(&mut order);
            assert_eq!(sent.body.concat(), form("llama3:8b").as_bytes(), "{at}");
            assert_eq!(sent.headers.len(), 1);
        }
        let without = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--b--";
        assert_eq!(body("fast", &[without]), without, "its content type does not say what it is");
    }

    fn aliases() -> Arc<[LentAlias]> {
        let alias = |name: &str, targets: &[&str]| LentAlias {
            name: name.to_owned(),
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
        };
        [alias("best", &["gone", "fast", "same"]), alias("other", &["gone"])].into()
    }

    #[test]
    fn an_alias_is_offered_while_one_of_its_models_is_and_stands_for_the_first_of_these() {
        let lent = lent();
        let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let models = texts(&["fast", "same"]);
        assert_eq!(lent.names(&models), ["fast", "same", "best"]);
        assert_eq!(lent.names(&texts(&["best", "same"])), ["best", "same"], "once each");
        assert_eq!(lent.names(&[]), Vec::<String>::new());
        for (models, real) in [(&["fast", "same"][..], "llama3:8b"), (&["same"], "same")] {
            lent.publish(&lent.names(&texts(models)), None, true);
            assert_eq!(lent.real_name("best").as_deref(), Some(real));
        }
        assert_eq!(lent.real_name("same"), None);
    }

    #[test]
    fn the_load_counts_live_guards() {
        let lent = Arc::new(lent());
        let (one, two) = (lent.count(), lent.count());
        assert_eq!(lent.load(), 2);
        drop((one, two));
        assert_eq!(lent.load(), 0);
    }

    #[test]
    fn links_that_share_a_backend_learn_when_it_is_no_longer_full() {
        let config =
            BackendConfig { max_concurrent: 2, ..BackendConfig::new("http://127.0.0.1:1") };
        let lent =
            Arc::new(LentBackend::new(&Lend::Http(config), aliases(), Duration::ZERO).unwrap());
        let first = lent.offers();
        drop([lent.count(), lent.count()]);
        assert!(!first.has_changed().unwrap(), "nobody else is there");
        let mut second = lent.offers();
        drop(lent.count());
        assert!(!second.has_changed().unwrap(), "it was not full");
        drop([lent.count(), lent.count()]);
        assert_eq!(second.borrow_and_update().eased, 1);
    }

    #[test]
    fn an_offer_counts_every_poll() {
        let lent = lent();
        let mut offers = lent.offers();
        let chat = Some(Endpoints::only(base::Endpoint::ChatCompletions));
        lent.publish(&["a".to_owned()], None, true);
        lent.publish(&["a".to_owned()], chat, true);
        assert!(offers.has_changed().unwrap());
        let offer = offers.borrow_and_update().clone();
        assert_eq!((offer.models.to_vec(), offer.polls), (vec!["a".to_owned()], 2));
        assert_eq!(offer.endpoints, chat);
    }
}
