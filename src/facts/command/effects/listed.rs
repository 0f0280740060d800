//! Lists of path patterns, made ready once for the many paths that are looked up in them.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::places;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{has_glob, matches};

pub(crate) static CRITICAL: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::CRITICAL));
pub(crate) static CREDENTIALS: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::CREDENTIALS));
pub(crate) static CREDENTIALS_ABSOLUTE: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::CREDENTIALS_ABSOLUTE));
pub(crate) static STARTUP: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::STARTUP));
pub(crate) static STARTUP_ABSOLUTE: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::STARTUP_ABSOLUTE));
pub(crate) static AUTH: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::AUTH));
pub(crate) static HISTORY: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::HISTORY));
pub(crate) static DISKS: LazyLock<Listed> = LazyLock::new(|| Listed::of(places::DISKS));

/// A list of paths and patterns.
pub(crate) struct Listed {
    exact: HashSet<&'static str>,
    patterns: Vec<Pattern>,
}

struct Pattern {
    /// What stands before its first glob.
    head: &'static str,
    /// With live globs.
    live: String,
    /// All of it but a `*` at its end, where it has no other glob.
    directory: Option<&'static str>,
}

impl Listed {
    fn of(list: &'static [&'static str]) -> Self {
        let open = |text: &str| text.contains(['*', '?', '[']);
        let pattern = |text: &'static str| Pattern {
            head: text.split(['*', '?', '[']).next().unwrap_or_default(),
            live: text.chars().map(text::glob_char).collect(),
            directory: text.strip_suffix('*').filter(|head| !open(head)).map(|head| head.trim_end_matches('/')),
        };
        Listed {
            exact: list.iter().copied().filter(|text| !open(text)).collect(),
            patterns: list.iter().copied().filter(|text| open(text)).map(pattern).collect(),
        }
    }

    /// Whether it lists a path, or what a path with globs can name.
    pub fn names(&self, path: &str) -> bool {
        if !has_glob(path) {
            return self.matches(path);
        }
        self.exact.iter().any(|exact| matches(path, exact))
            || self.patterns.iter().any(|pattern| {
                matches(&pattern.live, path) || pattern.directory.is_some_and(|directory| matches(path, directory))
            })
    }

    /// Whether it lists exactly this path, or a pattern that matches it.
    pub fn matches(&self, path: &str) -> bool {
        self.exact.contains(path)
            || self.patterns.iter().any(|pattern| path.starts_with(pattern.head) && matches(&pattern.live, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_paths_and_what_patterns_of_the_command_can_be() {
        let live = |text: &str| text.chars().map(text::glob_char).collect::<String>();
        for (path, want) in [
            (".ssh/id_rsa", true),
            (".ssh/known_hosts", false),
            (".netrc", true),
            (".netr", false),
            (".net*", true),
            (".gnupg/x/y", true),
            ("notes/*", false),
        ] {
            assert_eq!(CREDENTIALS.names(&live(path)), want, "{path}");
        }
        assert!(DISKS.matches("sda1") && DISKS.matches("mem") && !DISKS.matches("null"));
    }
}
