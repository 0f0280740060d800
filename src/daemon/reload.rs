//! Noticing that the configuration changed on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{debug, error, info, warn};

use crate::call::Digest;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::files::{self, Author};

/// An editor writes a file in several steps; what it leaves behind in this time is one change.
const SETTLED: Duration = Duration::from_millis(200);
/// How often to look where the kernel does not tell.
const LOOK: Duration = Duration::from_secs(5);

/// Reloads on every message of `hangups` and on every change of the configuration's files, as long as it is polled.
/// `loaded` is what the gateway was opened with.
pub async fn follow_changes(daemon: &Daemon, mut hangups: mpsc::Receiver<()>, mut loaded: Files) {
    let config = daemon.gateway().config();
    let (sender, mut changes) = mpsc::channel(1);
    let mut watcher = watcher(sender);
    let mut told = Vec::new();
    let mut missed = None;
    loop {
        let lapsed = daemon.gateway().config().lapsed(jiff::Timestamp::now());
        for warning in lapsed.iter().filter(|warning| !told.contains(*warning)) {
            warn!("{warning}");
        }
        told = lapsed;
        if let Some(watcher) = &mut watcher {
            watch(watcher, &config);
        }
        let asked = tokio::select! {
            Some(()) = hangups.recv() => true,
            Some(()) = changes.recv() => {
                sleep(SETTLED).await;
                while changes.try_recv().is_ok() {}
                false
            }
            () = sleep(LOOK) => false,
        };
        let found = Files::of(&config);
        // An editor that writes anew, or a mistaken `mv`, must not take rules away: that, somebody has to say.
        let gone = loaded.gone(&found);
        if !asked && !gone.is_empty() {
            if missed.as_ref() != Some(&found) {
                error!(
                    ?gone,
                    "files of the configuration are gone, so the old rules stay in force: put them back, or send SIGHUP"
                );
                daemon.gateway().hold_old_rules();
                missed = Some(found);
            }
        } else if asked || found != loaded {
            (loaded, missed) = (found, None);
            reload(daemon).await;
        }
    }
}

/// Loads everything anew. What is wrong with it is said, and the old rules stay in force.
async fn reload(daemon: &Daemon) {
    let gateway = Arc::clone(daemon.gateway());
    let done = tokio::task::spawn_blocking(move || {
        gateway.reload()?;
        gateway.agent_tokens()?;
        Ok::<_, crate::gateway::OpenError>(())
    });
    match done.await {
        Ok(Ok(())) => info!("configuration and rules were reloaded"),
        Ok(Err(error)) => error!(%error, "the new configuration is not used, the old one stays in force"),
        Err(error) => error!(%error, "reloading failed inside; please report this as a bug"),
    }
}

fn watcher(sender: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    // A full channel holds a message that will be seen.
    let told = move |event: notify::Result<notify::Event>| {
        // Reading the files is no change of them.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            let _ = sender.try_send(());
        }
    };
    notify::recommended_watcher(told)
        .inspect_err(|error| warn!(%error, "changes of files are noticed within {LOOK:?} only"))
        .ok()
}

/// Watches the configuration's directories, and the nearest directory above where one is not there yet.
fn watch(watcher: &mut RecommendedWatcher, config: &Config) {
    for dir in config.dirs() {
        let (place, mode) = match dir.ancestors().find(|place| place.is_dir()) {
            Some(place) if place == dir => (place, RecursiveMode::Recursive),
            Some(place) => (place, RecursiveMode::NonRecursive),
            None => continue,
        };
        // Watching again what is watched does no harm, and covers a directory that was replaced.
        if let Err(error) = watcher.watch(place, mode) {
            debug!(%error, dir = %place.display(), "changes here are noticed within {LOOK:?} only");
        }
    }
}

/// Every file that a reload would read, and its content.
#[derive(Debug, PartialEq, Eq)]
pub struct Files(BTreeMap<PathBuf, Result<Digest, String>>);

impl Files {
    pub fn of(config: &Config) -> Self {
        let mut files = Vec::new();
        for dir in config.dirs() {
            files.push(dir.join("portcullis.toml"));
            for inner in ["policies", "commands", "profiles"] {
                // What cannot be listed is for the reload to say.
                let _ = gather(&dir.join(inner), 0, &mut files);
            }
        }
        let content = |path: &PathBuf| match files::read(path, Author::Anyone) {
            Ok(content) => content.map(|content| Ok(Digest::of(content))),
            Err(error) => Some(Err(error.to_string())),
        };
        Files(files.into_iter().filter_map(|path| content(&path).map(|content| (path, content))).collect())
    }

    /// What was here and is not there now.
    fn gone<'a>(&'a self, now: &Files) -> Vec<&'a PathBuf> {
        self.0.keys().filter(|path| !now.0.contains_key(*path)).collect()
    }
}

fn gather(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    const DEEPEST: usize = 8;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if !path.is_dir() {
            files.push(path);
        } else if depth < DEEPEST {
            gather(&path, depth + 1, files)?;
        }
    }
    Ok(())
}
