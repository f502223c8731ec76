//! Reports of texts that differ from the undisturbed ones.

use crate::resume::{
    house::House,
    load::{Different, Load, Report},
};

/// The most texts that differ and are listed one by one.
const MAX_LISTED: usize = 20;

/// How many characters are listed on each side of the place where texts part.
const NEAR: usize = 30;

/// Asks again for the rest of each text that differs, from each of its seams on, of the model server itself. What the client
/// got must be that: then nothing was repeated or left out, and the model says it differently after its beginning was
/// read as a prompt.
pub(crate) async fn judge(load: &Load, house: &House, report: &Report) {
    for different in report.tally(|tally| std::mem::take(&mut tally.differ)) {
        match explain(load, house, &different).await {
            Ok(()) => {
                let line = difference(&different, load);
                report.tally(|tally| {
                    tally.differing += 1;
                    if tally.differences.len() < MAX_LISTED {
                        tally.differences.push(line);
                    }
                });
            }
            Err(wrong) => {
                report.tally(|tally| tally.wrong += 1);
                report.wrong(wrong);
            }
        }
    }
}

/// Where the text parts from the undisturbed one, and with which words.
fn difference(Different { api, prompt, text, seams }: &Different, load: &Load) -> String {
    let (said, undisturbed) = (text.chars(), load.undisturbed(*api, *prompt).chars());
    let same = said.zip(undisturbed).take_while(|(left, right)| left == right).count();
    let near = |text: &str| {
        text.chars().skip(same.saturating_sub(NEAR)).take(2 * NEAR).collect::<String>()
    };
    let seams: Vec<usize> = seams.iter().map(|(at, _)| *at).collect();
    let (said, undisturbed) = (near(text), near(load.undisturbed(*api, *prompt)));
    format!(
        "{api:?}, prompt {prompt}, seams after {seams:?} characters, differs after {same}: {said:?} instead of \
         {undisturbed:?}"
    )
}

async fn explain(load: &Load, house: &House, different: &Different) -> Result<(), String> {
    let Different { api, prompt, text, seams } = different;
    let characters: Vec<char> = text.chars().collect();
    let part = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
    let first = part(0, seams.first().map_or(characters.len(), |(characters, _)| *characters));
    if !load.undisturbed(*api, *prompt).starts_with(&first) {
        let undisturbed = load.undisturbed(*api, *prompt);
        return Err(format!("{api:?}: {first:?} before any seam, undisturbed {undisturbed:?}"));
    }
    for (at, (from, pieces)) in seams.iter().copied().enumerate() {
        let next = seams.get(at + 1).map(|(characters, _)| *characters);
        let (begun, said) = (part(0, from), part(from, next.unwrap_or(characters.len())));
        let rest = (*prompt, begun.as_str(), load.tokens - pieces.min(load.tokens - 1));
        let again = load.read(house.model_server(), *api, rest, |_| {}).await?.text;
        let is_said = if next.is_some() { again.starts_with(&said) } else { again == said };
        if !is_said {
            return Err(format!(
                "{api:?}: after {begun:?} came {said:?}, and the model says {again:?}"
            ));
        }
    }
    Ok(())
}
