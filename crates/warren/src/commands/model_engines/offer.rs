//! A model on the disk as a model to serve: the command line of its engine, and how much memory it takes.

use std::{path::PathBuf, sync::Arc};

use base::ModelFacts;
use daemon::options::{EngineOptions, engines::TogetherRule};
use engines::{EngineModel, Group, GroupRule, Program};
use models::shelf::LocalModel;

use super::{program::KnownProgram, wishes::Wishes};

/// The largest context, in tokens, that is chosen if the settings name none.
const USUAL_CONTEXT: u64 = 65_536;

/// The least context that is tried where memory is short.
const LEAST_CONTEXT: u64 = 4_096;

/// The program, and the settings for it.
#[derive(Debug, Clone)]
pub(crate) struct ServedProgram<'a> {
    pub(crate) options: &'a EngineOptions,
    pub(crate) program: &'a Arc<Program>,
    pub(crate) known: Option<KnownProgram>,
    /// The memory for all models together, in bytes.
    pub(crate) memory: u64,
}

impl ServedProgram<'_> {
    /// A model of GGUF files.
    pub(crate) fn gguf(&self, local: &LocalModel) -> EngineModel {
        let wishes = Wishes::of(self.options, &local.name);
        let parallel = wishes.parallel;
        let each = wishes.context.or_else(|| self.usual_context(local, parallel));
        let requests = u64::from(parallel.unwrap_or(1));
        let needed = local.memory(each.unwrap_or(LEAST_CONTEXT), requests);
        let facts =
            ModelFacts { context_tokens: each.or(local.facts().context_tokens), ..local.facts() };
        let model = Candidate {
            name: local.name.clone(),
            file: local.file().to_owned(),
            mmproj: local.projector.as_ref().map(|projector| projector.file.clone()),
            facts,
            needed,
        };
        self.model(model, each, wishes)
    }

    /// A folder or a file that is one model. Only its length is known.
    pub(crate) fn whole(&self, name: String, file: PathBuf, bytes: u64) -> EngineModel {
        let wishes = Wishes::of(self.options, &name);
        let facts = ModelFacts {
            file_bytes: Some(bytes),
            context_tokens: wishes.context,
            ..ModelFacts::default()
        };
        // A quarter more than the weights, for the computation.
        let needed = bytes.saturating_add(bytes / 4);
        let each = wishes.context;
        self.model(Candidate { name, file, mmproj: None, facts, needed }, each, wishes)
    }

    fn model(&self, model: Candidate, each: Option<u64>, wishes: Wishes) -> EngineModel {
        let whole = |each| match self.known {
            Some(known) => known.whole_context(each, wishes.parallel),
            None => each,
        };
        let abilities = model.facts.capabilities.unwrap_or_default();
        let own = self.known.map(|known| known.arguments_for(abilities)).unwrap_or_default();
        let memory_bytes = wishes.memory.unwrap_or(model.needed);
        EngineModel {
            name: wishes.alias.clone().unwrap_or(model.name),
            file: model.file,
            mmproj: model.mmproj,
            facts: ModelFacts { memory_bytes: Some(memory_bytes), ..model.facts },
            memory_bytes,
            context: each.map(whole),
            parallel: wishes.parallel,
            threads: None,
            program: Arc::clone(self.program),
            flags: [own, wishes.flags].concat(),
            keep: wishes.keep,
            ttl: wishes.ttl,
            group: wishes.group.map(|name| self.group(name)),
        }
    }

    fn group(&self, name: String) -> Group {
        let group = self.options.groups.as_ref().and_then(|groups| groups.get(&name)).copied();
        let rule = match group.unwrap_or_default() {
            TogetherRule::OneAtATime => GroupRule::OneAtATime,
            TogetherRule::Alone => GroupRule::Alone,
        };
        Group { name, rule }
    }

    /// The context that the model was made for, halved until the model takes no more than half of the memory.
    /// If no context is small enough for that, it is halved until the model fits at all.
    fn usual_context(&self, local: &LocalModel, parallel: Option<u32>) -> Option<u64> {
        let made_for = local.head.context_tokens.filter(|tokens| *tokens > 0)?;
        let requests = u64::from(parallel.unwrap_or(1));
        let sizes = std::iter::successors(Some(made_for.min(USUAL_CONTEXT)), |tokens| {
            Some(tokens / 2).filter(|half| *half >= LEAST_CONTEXT)
        });
        let sizes: Vec<u64> = sizes.collect();
        let fits = |memory: u64| {
            sizes.iter().copied().find(|tokens| local.memory(*tokens, requests) <= memory)
        };
        fits(self.memory / 2).or_else(|| fits(self.memory)).or(sizes.last().copied())
    }
}

/// A model with the memory that it needs, before settings are applied to it.
struct Candidate {
    name: String,
    file: PathBuf,
    mmproj: Option<PathBuf>,
    facts: ModelFacts,
    /// The memory in bytes, while it is loaded.
    needed: u64,
}
