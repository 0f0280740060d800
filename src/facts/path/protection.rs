//! Protected paths: files that can be inside the workspace and still need a person's word, or are refused.

use std::borrow::Cow;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::{Access, Protected, ProtectedAction};

/// A rule about paths that match a glob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedRule {
    /// Matched without regard to case, at any depth below the workspace or another root. One that starts with `/` is
    /// matched with the whole path. `x/**` covers `x` itself as well.
    pub glob: String,
    pub action: ProtectedAction,
    #[serde(default)]
    pub on: Guarded,
    /// Globs of what the rule leaves alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// Which accesses a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarded {
    #[default]
    Any,
    /// Writing and deleting.
    Change,
    Delete,
}

impl Guarded {
    fn covers(self, access: Access) -> bool {
        match self {
            Guarded::Any => true,
            Guarded::Change => access.changes(),
            Guarded::Delete => access == Access::Delete,
        }
    }
}

/// A glob that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("protected path rule `{rule}`: the glob `{glob}` cannot be used: {reason}")]
pub struct ProtectionError {
    rule: String,
    glob: String,
    reason: String,
}

/// Rules about protected paths, compiled.
#[derive(Clone, Debug)]
pub struct Protection {
    globs: GlobSet,
    /// The rule of each glob in the set.
    owners: Vec<usize>,
    rules: Vec<(ProtectedRule, GlobSet)>,
}

impl Protection {
    /// Compiles rules. Where several match, the strictest action counts.
    pub fn new(rules: Vec<ProtectedRule>) -> Result<Self, ProtectionError> {
        let mut set = GlobSetBuilder::new();
        let mut owners = Vec::new();
        let mut compiled = Vec::new();
        for (index, rule) in rules.into_iter().enumerate() {
            owners.resize(owners.len() + add(&mut set, &rule.glob, &rule.glob)?, index);
            let mut except = GlobSetBuilder::new();
            for glob in &rule.except {
                add(&mut except, &rule.glob, glob)?;
            }
            let except = except.build().map_err(|e| error(&rule.glob, "except", e))?;
            compiled.push((rule, except));
        }
        let globs = set.build().map_err(|e| error("all", "all", e))?;
        Ok(Protection { globs, owners, rules: compiled })
    }

    /// The rule that a path falls under for an access: a path relative to a root, or an absolute one.
    pub fn find(&self, path: &Path, access: Access) -> Option<Protected> {
        self.find_among(path, access, |_| true)
    }

    /// The same among the rules with an absolute glob alone.
    pub fn find_absolute(&self, path: &Path, access: Access) -> Option<Protected> {
        self.find_among(path, access, |rule| rule.glob.starts_with('/'))
    }

    fn find_among(&self, path: &Path, access: Access, among: impl Fn(&ProtectedRule) -> bool) -> Option<Protected> {
        let folded = fold(path);
        let mut found: Option<&ProtectedRule> = None;
        for index in self.globs.matches(folded.as_ref()) {
            let Some((rule, except)) = self.owners.get(index).and_then(|owner| self.rules.get(*owner)) else {
                continue;
            };
            if among(rule)
                && rule.on.covers(access)
                && !except.is_match(folded.as_ref())
                && found.is_none_or(|before| before.action < rule.action)
            {
                found = Some(rule);
            }
        }
        found.map(|rule| Protected { glob: rule.glob.clone(), action: rule.action })
    }
}

/// Accesses, what happens, the globs, and what they leave alone.
type Group = (Guarded, ProtectedAction, &'static [&'static str], &'static [&'static str]);

const STANDARD: &[Group] = &[
    // What git runs, here and in the repositories of its submodules and worktrees.
    (
        Guarded::Change,
        ProtectedAction::Deny,
        &[
            ".git/config",
            ".git/config.worktree",
            ".git/hooks/**",
            ".git/modules/**/config",
            ".git/modules/**/hooks/**",
            ".git/worktrees/**/config.worktree",
            ".git/worktrees/**/hooks/**",
        ],
        &[],
    ),
    // These point git at another repository, with that one's hooks, or at a filter.
    (Guarded::Change, ProtectedAction::Ask, &[".git", ".git/commondir", ".git/info/attributes"], &[]),
    (Guarded::Delete, ProtectedAction::Ask, &[".git/**"], &[]),
    // Keys and passwords.
    (
        Guarded::Any,
        ProtectedAction::Ask,
        &[".env", ".env.*"],
        &[".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", ".env.*.example"],
    ),
    (Guarded::Any, ProtectedAction::Ask, &["id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*"], &["*.pub"]),
    (
        Guarded::Any,
        ProtectedAction::Ask,
        &["*.pem", "*.key", ".npmrc", ".netrc", ".pypirc", ".docker/config.json"],
        &[],
    ),
    (
        Guarded::Any,
        ProtectedAction::Deny,
        &[".ssh/**", ".aws/**", ".gnupg/**", ".kube/**", ".config/gcloud/**", ".git-credentials"],
        &[],
    ),
    // What a shell runs when it starts.
    (
        Guarded::Change,
        ProtectedAction::Ask,
        &[
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".config/fish/**",
            ".envrc",
        ],
        &[],
    ),
    // What agents and editors run when they start.
    (
        Guarded::Change,
        ProtectedAction::Ask,
        &[
            ".claude/**",
            ".cursor/**",
            ".mcp.json",
            ".vscode/**",
            ".codex/**",
            ".gemini/**",
            ".idea/**",
            ".zed/**",
            ".dir-locals.el",
            ".windsurf/**",
            ".kiro/**",
            ".roo/**",
            ".continue/**",
            ".opencode/**",
            "opencode.json",
            ".qwen/**",
            ".amazonq/**",
            ".junie/**",
            ".aider.conf.yml",
        ],
        &[],
    ),
    // What puts the gateway in front of them: their hooks, and the switches that turn hooks off.
    (
        Guarded::Change,
        ProtectedAction::Deny,
        &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/hooks/**",
            ".codex/hooks.json",
            ".codex/config.toml",
            ".gemini/settings.json",
            ".cursor/hooks.json",
            ".copilot/hooks/**",
            ".copilot/config.json",
            ".github/hooks/**",
            ".opencode/plugin/**",
            ".opencode/plugins/**",
            ".config/opencode/**",
            ".windsurf/hooks.json",
            ".codeium/windsurf/hooks.json",
            ".clinerules/hooks/**",
            "Documents/Cline/Hooks/**",
            ".openhands/hooks.json",
        ],
        &[],
    ),
    // What tells agents what to do.
    (Guarded::Change, ProtectedAction::Ask, &["CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules"], &[]),
    // What other tools run by themselves: on a commit, in a rebase, on a server, when they start.
    (
        Guarded::Change,
        ProtectedAction::Ask,
        &[
            ".husky/**",
            ".pre-commit-config.yaml",
            ".git/rebase-merge/**",
            ".git/rebase-apply/**",
            ".git/worktrees/**/gitdir",
            ".github/workflows/**",
            ".gitlab-ci.yml",
            ".devcontainer/**",
            ".cargo/config",
            ".cargo/config.toml",
            ".gdbinit",
            ".vimrc",
            ".exrc",
            ".tmux.conf",
            "mise.toml",
            ".mise.toml",
            "pip.conf",
            ".yarnrc",
            ".yarnrc.yml",
        ],
        &[],
    ),
    (Guarded::Change, ProtectedAction::Deny, &[".portcullis.toml", ".portcullis/**"], &[]),
];

/// The rules that hold where the configuration says nothing else.
pub fn standard_rules() -> Vec<ProtectedRule> {
    let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
    let rules = STANDARD.iter().flat_map(|(on, action, globs, except)| {
        let rule = |glob| ProtectedRule { glob, action: *action, on: *on, except: owned(except) };
        owned(globs).into_iter().map(rule)
    });
    rules.collect()
}

/// Adds the forms of a glob and says how many they are.
fn add(set: &mut GlobSetBuilder, rule: &str, glob: &str) -> Result<usize, ProtectionError> {
    let folded: String = glob.nfkc().flat_map(char::to_lowercase).collect();
    let anywhere = if folded.starts_with('/') || folded.starts_with("**/") { folded } else { format!("**/{folded}") };
    let forms = anywhere.strip_suffix("/**").map(str::to_owned).into_iter().chain([anywhere.clone()]);
    let mut count = 0;
    for form in forms {
        let compiled = GlobBuilder::new(&form).literal_separator(true).build().map_err(|e| error(rule, glob, e))?;
        set.add(compiled);
        count += 1;
    }
    Ok(count)
}

fn error(rule: &str, glob: &str, reason: globset::Error) -> ProtectionError {
    ProtectionError { rule: rule.to_owned(), glob: glob.to_owned(), reason: reason.kind().to_string() }
}

/// A path as the most lenient file system would read it, so that every spelling that opens a protected file somewhere matches:
/// without case (ext4 with casefold, APFS, NTFS), in one of Unicode's forms and without characters that show nothing (HFS+),
/// full-width letters as plain ones, without what NTFS drops from the end of a name or takes for a stream of it, and with
/// the short name that NTFS gives `.git`.
fn fold(path: &Path) -> Cow<'_, Path> {
    match path.to_str() {
        Some(text) if is_folded(text.as_bytes()) => Cow::Borrowed(path),
        _ => Cow::Owned(path.to_string_lossy().split('/').map(fold_name).collect::<Vec<_>>().join("/").into()),
    }
}

fn is_folded(text: &[u8]) -> bool {
    let odd = |byte: u8| byte.is_ascii_uppercase() || !byte.is_ascii() || matches!(byte, b':' | b'~');
    let ends_oddly = |name: &[u8]| matches!(name, [.., b'.' | b' ']);
    !text.iter().any(|byte| odd(*byte)) && !text.split(|byte| *byte == b'/').any(ends_oddly)
}

fn fold_name(name: &str) -> String {
    let shown: String = name.chars().filter(|c| !shows_nothing(*c)).nfkc().flat_map(char::to_lowercase).collect();
    let plain = shown.split_once("::$").map_or(shown.as_str(), |(name, _)| name);
    match plain.trim_end_matches(['.', ' ']) {
        // `.`, `..` and the like.
        "" => shown,
        "git~1" => ".git".to_owned(),
        plain => plain.to_owned(),
    }
}

/// Characters that have no shape of their own (Default_Ignorable_Code_Point, as far as names are compared without them).
fn shows_nothing(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(path: &str, access: Access) -> Option<ProtectedAction> {
        Protection::new(standard_rules()).unwrap().find(Path::new(path), access).map(|p| p.action)
    }

    #[test]
    fn standard_rules_cover_what_they_are_for() {
        use Access::{Delete, Read, Write};
        use ProtectedAction::{Ask, Deny};
        for (path, access, expected) in [
            (".git/config", Write, Some(Deny)),
            (".git/config", Read, None),
            (".GIT/Config", Write, Some(Deny)),
            ("vendor/x/.git/hooks/pre-commit", Write, Some(Deny)),
            (".git/hooks", Delete, Some(Deny)),
            (".git/modules/a/b/hooks/post-merge", Write, Some(Deny)),
            (".git/index", Write, None),
            (".git", Write, Some(Ask)),
            (".git", Delete, Some(Ask)),
            (".gitignore", Write, None),
            (".env", Read, Some(Ask)),
            ("app/.env.production", Read, Some(Ask)),
            (".env.example", Write, None),
            (".environment", Read, None),
            ("certs/server.PEM", Read, Some(Ask)),
            ("id_ed25519", Read, Some(Ask)),
            ("id_ed25519.pub", Read, None),
            (".ssh", Read, Some(Deny)),
            ("/home/alice/.ssh/id_rsa.pub", Read, Some(Deny)),
            (".mcp.json", Read, None),
            (".mcp.json", Write, Some(Ask)),
            (".claude/settings.json", Write, Some(Deny)),
            ("app/.claude/settings.local.json", Delete, Some(Deny)),
            (".claude/commands/x.md", Write, Some(Ask)),
            (".opencode/plugins/portcullis.js", Delete, Some(Deny)),
            (".claude/settings.json", Read, None),
            ("src/.portcullis.toml", Write, Some(Deny)),
            ("src/key.rs", Write, None),
        ] {
            assert_eq!(action(path, access), expected, "{access:?} {path}");
        }
    }

    #[test]
    fn a_letter_that_only_folds_to_ascii_matches_too() {
        assert_eq!(action("x.\u{212A}EY", Access::Read), Some(ProtectedAction::Ask), "the Kelvin sign folds to k");
    }

    #[test]
    fn every_spelling_that_opens_a_protected_file_somewhere_matches() {
        for spelling in [
            ".GIT/HOOKS/pre-commit",
            ".Git/hooks/x",
            ".g\u{200c}it/hooks/x",
            "\u{feff}.git/hooks/x",
            ".\u{ff47}\u{ff49}\u{ff54}/hooks/x",
            ".git/\u{ff28}ooks/x",
            ".git./hooks/x",
            ".git /hooks/x",
            ".git...  /hooks./x",
            ".git::$INDEX_ALLOCATION/hooks/x",
            "git~1/hooks/x",
            "GIT~1/config",
            ".git/config::$DATA",
        ] {
            assert_eq!(action(spelling, Access::Write), Some(ProtectedAction::Deny), "{spelling:?}");
        }
        let rule = ProtectedRule {
            glob: "se\u{301}cret".into(),
            action: ProtectedAction::Ask,
            on: Guarded::Any,
            except: Vec::new(),
        };
        let protection = Protection::new(vec![rule]).unwrap();
        for form in ["s\u{e9}cret", "se\u{301}cret", "S\u{c9}CRET"] {
            assert!(protection.find(Path::new(form), Access::Read).is_some(), "{form:?}");
        }
        for other in ["git~2/hooks/x", "a:b", "~", "src/git/hooks.rs", "...", ".../x", "\u{e9}t\u{e9}.txt", "C:/x"] {
            assert_eq!(action(other, Access::Write), None, "{other:?} is nothing of the kind");
        }
    }

    #[test]
    fn a_glob_that_cannot_be_used_is_named() {
        let rule =
            ProtectedRule { glob: "a[".into(), action: ProtectedAction::Ask, on: Guarded::Any, except: Vec::new() };
        let message = Protection::new(vec![rule]).unwrap_err().to_string();
        assert!(message.contains("`a[`"), "{message}");
    }
}
