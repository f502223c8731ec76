//! Projectors, given to their models.

use std::path::Path;

use super::{LocalModel, PassedOver, Projector, heads::HeadedFile, name, parts::Unnamed};

/// The forms in which a projector may be stored, best first: more exact ones are not better to see with.
const BEST: [&str; 4] = ["F16", "BF16", "Q8_0", "F32"];

/// Gives each model its projector. The models have no names yet.
pub(super) fn attach(
    models: Vec<Unnamed>,
    mut projectors: Vec<HeadedFile>,
    passed_over: &mut Vec<PassedOver>,
) -> Vec<Named> {
    projectors.sort_by_key(|projector| {
        let kind = projector.head.quantization.as_deref().unwrap_or_default();
        BEST.iter().position(|best| *best == kind).unwrap_or(BEST.len())
    });
    let mut models: Vec<Named> = models.into_iter().map(|model| (model, None)).collect();
    for projector in projectors {
        let of = models_of(&projector, &models);
        if of.is_empty() && !projector.found.is_beside {
            let reason = "it is a projector, and no model beside it has its name, or several may";
            passed_over.push(PassedOver::new(&projector.found.path, reason));
        }
        for at in of {
            if let Some((_, slot)) = models.get_mut(at) {
                slot.get_or_insert_with(|| made_of(&projector));
            }
        }
    }
    models
}

/// A model with its projector, and still without a name.
pub(super) type Named = (Unnamed, Option<Projector>);

/// With a name.
pub(super) fn named((model, projector): Named, name: String) -> LocalModel {
    LocalModel {
        name,
        id: model.id,
        files: model.files,
        file_bytes: model.bytes,
        projector,
        head: model.head,
    }
}

fn made_of(file: &HeadedFile) -> Projector {
    Projector { file: file.found.path.clone(), bytes: file.bytes, head: file.head.clone() }
}

/// The places of the models that it is for: those of one program's name, or those of its directory that are
/// called as it is; else all of its directory, if they are one model in several forms.
fn models_of(projector: &HeadedFile, models: &[Named]) -> Vec<usize> {
    let found = &projector.found;
    let near = |(_, (model, _)): &(usize, &Named)| match found.is_given {
        true => model.is_given && model.stem == found.stem,
        false => {
            !model.is_given
                && model.files.first().and_then(|file| folder(file)) == folder(&found.path)
        }
    };
    let near: Vec<_> = models.iter().enumerate().filter(near).collect();
    let of = name::of_projector(&found.stem);
    let is_called = |(_, (model, _)): &&(usize, &Named)| {
        !of.is_empty() && model.stem.to_lowercase().starts_with(&of)
    };
    let called: Vec<_> = near.iter().filter(is_called).map(|(at, _)| *at).collect();
    let short = |(_, (model, _)): &(usize, &Named)| name::short(&model.stem).to_lowercase();
    let is_one = near.windows(2).all(|pair| short(&pair[0]) == short(&pair[1]));
    match (called.is_empty(), is_one) {
        (false, _) => called,
        (true, true) => near.iter().map(|(at, _)| *at).collect(),
        (true, false) => Vec::new(),
    }
}

fn folder(path: &Path) -> Option<&Path> {
    path.parent()
}
