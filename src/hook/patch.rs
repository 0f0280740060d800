//! The patches that agents write (`*** Begin Patch`), as far as it matters here: which files they change, and how.

/// A file that a patch changes. `old` is empty where the file is made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub old: String,
    pub new: String,
}

/// Why a text is no patch.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("a patch begins with `*** Begin Patch` and ends with `*** End Patch`")]
    Frame,
    #[error("line {0} of the patch belongs to no file")]
    Homeless(usize),
    #[error("line {0} of the patch is of an unknown kind")]
    Unknown(usize),
    #[error("the patch changes no file")]
    Empty,
}

/// Reads a patch. A file that is moved is two changes, and one that is deleted is one whose text goes.
///
/// # Errors
///
/// What is wrong with it, and where.
pub fn read(text: &str) -> Result<Vec<Change>, PatchError> {
    let lines: Vec<&str> = text.trim().lines().collect();
    let [first, body @ .., last] = lines.as_slice() else { return Err(PatchError::Frame) };
    if first.trim_end() != "*** Begin Patch" || last.trim_end() != "*** End Patch" {
        return Err(PatchError::Frame);
    }
    let mut changes: Vec<Change> = Vec::new();
    let mut adds = false;
    for (index, line) in body.iter().enumerate() {
        let number = index + 2;
        if let Some(header) = line.strip_prefix("*** ") {
            let begun =
                |path: &str, old: &str| Change { path: path.to_owned(), old: old.to_owned(), new: String::new() };
            match header.split_once(": ").map(|(word, path)| (word, path.trim())) {
                Some(("Add File", path)) => {
                    adds = true;
                    changes.push(begun(path, ""));
                }
                Some(("Update File", path)) => {
                    adds = false;
                    changes.push(begun(path, ""));
                }
                // What the file held is not known here; that it goes is.
                Some(("Delete File", path)) => {
                    adds = false;
                    changes.push(begun(path, "the whole file"));
                }
                Some(("Move to", path)) => {
                    let from = changes.last_mut().ok_or(PatchError::Homeless(number))?;
                    "the whole file".clone_into(&mut from.old);
                    changes.push(begun(path, ""));
                }
                None if header.trim_end() == "End of File" => {}
                _ => return Err(PatchError::Unknown(number)),
            }
            continue;
        }
        let change = changes.last_mut().ok_or(PatchError::Homeless(number))?;
        let put = |to: &mut String, text: &str| {
            to.push_str(text);
            to.push('\n');
        };
        match line.split_at_checked(1) {
            None if line.is_empty() => {}
            None => return Err(PatchError::Unknown(number)),
            Some(("@", _)) => {}
            Some(("+", text)) => put(&mut change.new, text),
            Some((_, _)) if adds => return Err(PatchError::Unknown(number)),
            Some(("-", text)) => put(&mut change.old, text),
            Some((" ", text)) => {
                put(&mut change.old, text);
                put(&mut change.new, text);
            }
            Some(_) => return Err(PatchError::Unknown(number)),
        }
    }
    if changes.is_empty() { Err(PatchError::Empty) } else { Ok(changes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_is_seen() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** Update File: src/b.rs\n@@ fn main\n keep\n-old\n+new\n\
            *** Delete File: c\n*** Update File: d\n*** Move to: ../e\n-x\n+y\n*** End of File\n*** End Patch\n";
        let change = |path: &str, old: &str, new: &str| Change { path: path.into(), old: old.into(), new: new.into() };
        assert_eq!(
            read(text).unwrap(),
            [
                change("a.txt", "", "one\ntwo\n"),
                change("src/b.rs", "keep\nold\n", "keep\nnew\n"),
                change("c", "the whole file", ""),
                change("d", "the whole file", ""),
                change("../e", "x\n", "y\n"),
            ]
        );
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        for (text, error) in [
            ("", PatchError::Frame),
            ("*** Begin Patch", PatchError::Frame),
            ("*** Begin Patch\n*** End Patch", PatchError::Empty),
            ("*** Begin Patch\n+x\n*** End Patch", PatchError::Homeless(2)),
            ("*** Begin Patch\n*** Add File: a\n x\n*** End Patch", PatchError::Unknown(3)),
            ("*** Begin Patch\n*** Erase File: a\n*** End Patch", PatchError::Unknown(2)),
            ("*** Begin Patch\n*** Update File: a\n\u{e9}x\n*** End Patch", PatchError::Unknown(3)),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
    }
}
