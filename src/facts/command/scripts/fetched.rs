//! Archives that came over the network: what runs out of the directory that one was unpacked into is code that nobody
//! read, like a script that was fetched.

use crate::facts::command::effects::target::Target;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::FETCHED;

/// Directories that are remembered.
const DIRECTORIES: usize = 16;

/// Where a fetched archive was unpacked.
#[derive(Clone, Debug)]
pub(crate) struct Unpacked {
    directory: String,
    /// The directory was there before, and may hold what is not of the archive.
    shared: bool,
}

impl Walker<'_> {
    /// An archive, or standard input where it names none, is unpacked into a directory.
    pub(crate) fn unpacks(&mut self, archives: &[String], directory: Option<&str>) {
        let piped = archives.iter().all(|path| path == "-");
        let input = piped && self.env.stdin.as_deref().is_some_and(|text| text.contains(FETCHED));
        let fetched = input || archives.iter().any(|path| self.content(&self.target(path)).contains(FETCHED));
        let target = self.target(directory.unwrap_or("."));
        if fetched && target.is_known() && self.unpacked.len() < DIRECTORIES {
            self.unpacked.push(Unpacked { directory: target.path, shared: directory.is_none() });
        }
    }

    /// A file runs whose content is not known: whether a fetched archive brought it. `named` is one that was called by
    /// its path; an interpreter's script directly in a directory that other files share is more likely one of those.
    pub(crate) fn watch_unpacked(&mut self, target: &Target, named: bool) {
        let below = |unpacked: &Unpacked| {
            let rest = target.path.strip_prefix(&unpacked.directory).and_then(|rest| rest.strip_prefix('/'));
            rest.is_some_and(|rest| named || !unpacked.shared || rest.contains('/'))
        };
        if self.unpacked.iter().any(below) && !self.files.contains_key(&target.path) {
            self.event("fetch-and-run");
        }
    }
}
