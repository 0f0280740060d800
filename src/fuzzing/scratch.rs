//! A directory of one input's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Removed with everything in it when dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("portcullis-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temp = fs::canonicalize(std::env::temp_dir()).expect("the temporary directory exists");
        let path = temp.join(name);
        fs::create_dir(&path).expect("a scratch directory is made");
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
