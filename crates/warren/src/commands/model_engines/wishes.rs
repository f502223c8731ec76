//! The wishes for each model: the settings for all, and the different ones for the models of a name.

use std::time::Duration;

use daemon::options::{EngineModelOptions, EngineOptions, Span, engines::Bytes};

/// The wishes for one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wishes {
    pub(crate) alias: Option<String>,
    /// The context in tokens, for each request at a time.
    pub(crate) context: Option<u64>,
    /// The requests at a time.
    pub(crate) parallel: Option<u32>,
    /// The memory in bytes.
    pub(crate) memory: Option<u64>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) keep: bool,
    pub(crate) group: Option<String>,
    /// Further arguments: those for all models, then the model's own.
    pub(crate) flags: Vec<String>,
}

impl Wishes {
    /// The wishes for the model of this name. Settings for its exact name count before those for patterns,
    /// and patterns count in alphabetical order.
    pub(crate) fn of(options: &EngineOptions, name: &str) -> Self {
        let own = options.model.iter().flatten();
        let (exact, patterns): (Vec<_>, Vec<_>) =
            own.filter(|(pattern, _)| matches(pattern, name)).partition(|(own, _)| *own == name);
        let mut wishes = exact.into_iter().chain(patterns).map(|(_, wishes)| wishes).peekable();
        let merged = wishes
            .by_ref()
            .fold(EngineModelOptions::default(), |merged, next| merged_with(merged, next.clone()));
        Self::merged(options, merged)
    }

    fn merged(options: &EngineOptions, own: EngineModelOptions) -> Self {
        let flags = [options.flags.clone(), own.flags];
        Self {
            alias: own.alias,
            context: own.context.or(options.context).filter(|tokens| *tokens > 0),
            parallel: own.parallel.or(options.parallel).filter(|number| *number > 0),
            memory: own.memory.map(|Bytes(bytes)| bytes),
            ttl: own.ttl.or(options.ttl).map(|Span(time)| time),
            keep: own.keep.or(options.keep).unwrap_or(false),
            group: own.group.or_else(|| options.group.clone()),
            flags: flags.into_iter().flatten().flatten().collect(),
        }
    }
}

fn merged_with(first: EngineModelOptions, next: EngineModelOptions) -> EngineModelOptions {
    EngineModelOptions {
        alias: first.alias.or(next.alias),
        context: first.context.or(next.context),
        parallel: first.parallel.or(next.parallel),
        memory: first.memory.or(next.memory),
        ttl: first.ttl.or(next.ttl),
        keep: first.keep.or(next.keep),
        group: first.group.or(next.group),
        flags: first.flags.or(next.flags),
    }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, fits) in [
            ("qwen3-8b", "qwen3-8b", true),
            ("qwen3-8b", "qwen3-8b-q4", false),
            ("qwen3*", "qwen3-8b", true),
            ("*-8b", "qwen3-8b", true),
            ("*-8b", "qwen3-8b-q4", false),
            ("q*3*b", "qwen3-8b", true),
            ("*", "", true),
            ("a*a", "a", false),
            ("q*x*b", "qwen3-8b", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    fn options(text: &str) -> EngineOptions {
        let text = format!("[[worker.engines]]\n{text}");
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(place.path(), text).unwrap();
        let file = daemon::ConfigFile::find(Some(place.path())).unwrap();
        file.worker.engines.unwrap().remove(0)
    }

    #[test]
    fn the_nearest_wish_wins_and_arguments_add_up() {
        let all = options(
            "context = 8192\nflags = ['-ngl', '99']\nttl = '10m'\n\
             [worker.engines.model.'*']\nkeep = true\ncontext = 4096\n\
             [worker.engines.model.qwen]\ncontext = 32768\nflags = ['--jinja']\nmemory = '2GiB'",
        );
        let qwen = Wishes::of(&all, "qwen");
        assert_eq!((qwen.context, qwen.keep, qwen.memory), (Some(32_768), true, Some(2 << 30)));
        assert_eq!(qwen.flags, ["-ngl", "99", "--jinja"]);
        let other = Wishes::of(&all, "other");
        assert_eq!((other.context, other.memory), (Some(4096), None));
        assert_eq!(other.flags, ["-ngl", "99"]);
        assert_eq!(other.ttl, Some(Duration::from_secs(600)));
    }
}
