//! Makes a script that is not covered small, while it stays so.

/// Cuts pieces out of `script` as long as one of the cut scripts still fails. `failing` gives the first that does.
pub(super) fn minimised(script: &str, failing: &mut dyn FnMut(&[String]) -> Option<usize>) -> String {
    let mut best = script.to_owned();
    let mut size = best.chars().count() / 2;
    while size > 0 {
        let cuts: Vec<String> = cuts(&best, size);
        match if cuts.is_empty() { None } else { failing(&cuts) } {
            Some(found) => {
                best = cuts.into_iter().nth(found).unwrap_or(best);
                size = size.min(best.chars().count());
            }
            None => size /= 2,
        }
    }
    best
}

fn cuts(script: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = script.chars().collect();
    let step = (size / 2).max(1);
    (0..chars.len())
        .step_by(step)
        .map(|at| chars.iter().take(at).chain(chars.iter().skip(at + size)).collect::<String>())
        .filter(|cut| !cut.trim().is_empty() && cut.len() < script.len())
        .collect()
}
