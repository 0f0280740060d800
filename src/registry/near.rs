//! What somebody may have meant by a name that is not there.

/// The names that shells and other gateways have for the tool that runs commands.
const SHELLS: &[&str] = &["bash", "sh", "shell", "exec", "run", "cmd", "command", "execute"];
/// How alike two names have to be, of 1 for the same.
const ALIKE: f64 = 0.75;

/// The name that comes nearest to what was written, where one comes near.
pub fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    names
        .map(|name| (alike(&written, name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

fn alike(written: &str, name: &str) -> f64 {
    if name == "Bash" && SHELLS.contains(&written) {
        return 1.0;
    }
    strsim::normalized_damerau_levenshtein(written, &name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_understood_and_another_word_is_not() {
        let tools = ["Bash", "Edit", "Glob", "Grep", "ListDir", "Read", "Write"];
        for (written, meant) in [
            ("bash", Some("Bash")),
            ("Bahs", Some("Bash")),
            ("shell", Some("Bash")),
            ("Reed", Some("Read")),
            ("raed", Some("Read")),
            ("listdir", Some("ListDir")),
            ("LisDir", Some("ListDir")),
            ("Nope", None),
            ("WebFetch", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, tools.into_iter()), meant, "{written}");
        }
    }
}
