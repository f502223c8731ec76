//! What is to be said of texts that differ from the undisturbed ones.

use crate::resume::{
    house::House,
    load::{Different, Load, Report},
};

/// Asks again for the rest of each text that differs, from each of its seams on, of the model server itself. What the client
/// got must be that: then nothing was repeated or left out, and the model says it differently after its beginning was
/// read as a prompt.
pub(crate) async fn judge(load: &Load, house: &House, report: &Report) {
    for different in report.tally(|tally| std::mem::take(&mut tally.differ)) {
        match explain(load, house, &different).await {
            Ok(()) => report.tally(|tally| tally.differing += 1),
            Err(wrong) => {
                report.tally(|tally| tally.wrong += 1);
                report.wrong(wrong);
            }
        }
    }
}

async fn explain(load: &Load, house: &House, different: &Different) -> Result<(), String> {
    let Different { api, prompt, text, seams } = different;
    let characters: Vec<char> = text.chars().collect();
    let part = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
    let ends = seams.iter().copied().skip(1).chain([characters.len()]);
    let first = part(0, seams.first().copied().unwrap_or(characters.len()));
    if !load.undisturbed(*api, *prompt).starts_with(&first) {
        let undisturbed = load.undisturbed(*api, *prompt);
        return Err(format!("{api:?}: {first:?} before any seam, undisturbed {undisturbed:?}"));
    }
    for (from, to) in seams.iter().copied().zip(ends) {
        let (begun, said) = (part(0, from), part(from, to));
        let again = load.read(house.model_server(), *api, *prompt, &begun, |_| {}).await?;
        if !again.text.starts_with(&said) {
            let again = again.text;
            return Err(format!(
                "{api:?}: after {begun:?} came {said:?}, and the model says {again:?}"
            ));
        }
    }
    Ok(())
}
