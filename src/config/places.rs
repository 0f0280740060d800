//! Where configuration and state lie.

use std::env;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::facts::normalise;

/// The variables that name the places.
pub const CONFIG: &str = "PORTCULLIS_CONFIG";
const STATE: &str = "PORTCULLIS_STATE";

/// The directories of one installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// `/etc/portcullis`: the machine's configuration. Absent when `PORTCULLIS_CONFIG` names another.
    pub system: Option<PathBuf>,
    /// `PORTCULLIS_CONFIG`, else `$XDG_CONFIG_HOME/portcullis`, else `~/.config/portcullis`.
    pub config: PathBuf,
    /// `PORTCULLIS_STATE`, else `$XDG_STATE_HOME/portcullis`, else `~/.local/state/portcullis`.
    pub state: PathBuf,
    pub home: PathBuf,
}

impl Places {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// When neither `HOME` nor the overrides say where to look, or an override is not an absolute path.
    pub fn from_env() -> Result<Self, ConfigError> {
        let home = absolute("HOME")?;
        // Where a place is said to be, without asking the home directory.
        let said = |variable: &'static str, xdg: &'static str| -> Result<Option<PathBuf>, ConfigError> {
            // The XDG specification says to ignore a relative value.
            let base = || env::var_os(xdg).map(PathBuf::from).filter(|path| path.is_absolute());
            Ok(absolute(variable)?.or_else(|| base().map(|base| base.join("portcullis"))))
        };
        let (config, state) = (said(CONFIG, "XDG_CONFIG_HOME")?, said(STATE, "XDG_STATE_HOME")?);
        let unsaid = [(&config, CONFIG), (&state, STATE)].into_iter().filter(|(place, _)| place.is_none());
        let unsaid: Vec<&'static str> = unsaid.map(|(_, variable)| variable).collect();
        let (config, state) = match (config, state, &home) {
            (Some(config), Some(state), _) => (config, state),
            (_, _, None) => return Err(ConfigError::NoHome { unsaid }),
            // The gateway makes its own directories there, and no home directory.
            (_, None, Some(home)) if matches!(home.try_exists(), Ok(false)) => {
                return Err(ConfigError::HomeMissing { home: home.clone(), unsaid });
            }
            (config, state, Some(home)) => (
                config.unwrap_or_else(|| home.join(".config/portcullis")),
                state.unwrap_or_else(|| home.join(".local/state/portcullis")),
            ),
        };
        let system = env::var_os(CONFIG).is_none().then(|| PathBuf::from("/etc/portcullis"));
        Ok(Places { system, config, state, home: home.unwrap_or_else(|| PathBuf::from("/")) })
    }

    /// The daemon's socket: `$XDG_RUNTIME_DIR/portcullis/gateway.sock`, or `gateway.sock` in the state directory where
    /// that variable is not set or `PORTCULLIS_STATE` names the state directory (there may be several, each with a
    /// daemon of its own).
    pub fn socket(&self) -> PathBuf {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
        match runtime {
            Some(runtime) if env::var_os(STATE).is_none() => runtime.join("portcullis/gateway.sock"),
            _ => self.state.join("gateway.sock"),
        }
    }

    /// Where the directories of running calls are.
    pub fn scratch(&self) -> PathBuf {
        self.state.join("scratch")
    }

    /// Everything of the gateway's own that no call may touch.
    pub fn own(&self) -> Vec<PathBuf> {
        let mut own = vec![self.config.clone(), self.state.clone()];
        own.extend(self.system.clone());
        own.extend(env::current_exe().ok());
        own.extend(self.socket().parent().map(Path::to_owned).filter(|dir| *dir != self.state));
        // The same places under their real names, should a parent be a symbolic link.
        let real: Vec<PathBuf> =
            own.iter().filter_map(|p| p.canonicalize().ok()).filter(|p| !own.contains(p)).collect();
        own.extend(real);
        own
    }

    /// Refuses a workspace from which an agent could reach the gateway's configuration or state.
    ///
    /// # Errors
    ///
    /// Names the directory that lies inside the workspace.
    pub fn refuse_inside(&self, workspace: &Path) -> Result<(), ConfigError> {
        let real = workspace.canonicalize().unwrap_or_else(|_| normalise(workspace));
        match self.held_by(&real) {
            Some((what, place)) => Err(ConfigError::WorkspaceHoldsGateway { workspace: real, what, place }),
            None => Ok(()),
        }
    }

    /// The same for an extra root that may be written.
    ///
    /// # Errors
    ///
    /// Names the directory that lies inside the root.
    pub fn refuse_root(&self, root: &Path) -> Result<(), ConfigError> {
        match self.held_by(&real_or_nearest(root)) {
            Some((what, place)) => Err(ConfigError::RootHoldsGateway { root: root.to_owned(), what, place }),
            None => Ok(()),
        }
    }

    /// What of the gateway's own lies in a directory.
    fn held_by(&self, directory: &Path) -> Option<(&'static str, PathBuf)> {
        let own = [("state", &self.state), ("configuration", &self.config)];
        own.into_iter()
            .find(|(_, place)| real_or_nearest(place).starts_with(directory))
            .map(|(what, place)| (what, place.clone()))
    }
}

/// The path with as much of it resolved as exists.
fn real_or_nearest(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return normalise(&real.join(rest));
        }
    }
    normalise(path)
}

fn absolute(variable: &'static str) -> Result<Option<PathBuf>, ConfigError> {
    match env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from) {
        Some(path) if !path.is_absolute() => Err(ConfigError::RelativePlace { variable, path }),
        found => Ok(found.map(|path| normalise(&path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_a_workspace_that_holds_the_state_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            system: None,
            config: dir.path().join("c/portcullis"),
            state: dir.path().join("w/deep/portcullis"),
            home: dir.path().into(),
        };
        std::fs::create_dir_all(dir.path().join("w")).unwrap();
        let told = places.refuse_inside(&dir.path().join("w")).unwrap_err().to_string();
        assert!(told.contains("state") && told.contains("w/deep/portcullis"), "{told}");
        assert!(places.refuse_inside(&dir.path().join("c")).is_err());
        std::fs::create_dir_all(dir.path().join("other")).unwrap();
        assert!(places.refuse_inside(&dir.path().join("other")).is_ok());
        // A symbolic link to a parent does not hide it.
        std::os::unix::fs::symlink(dir.path(), dir.path().join("other/link")).unwrap();
        assert!(places.refuse_inside(&dir.path().join("other/link/w")).is_err());
    }
}
