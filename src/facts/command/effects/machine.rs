//! Effects of ordinary programs that no rule needs to object to: processes ended, packages installed, ports opened.
//! Policies may.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::target::Kinds;
use crate::facts::command::notes::Act;

/// Package managers and the words with which they install. An empty word stands for none at all.
const INSTALLERS: &[(&[&str], &[&str])] = &[
    (
        &["npm", "pnpm", "yarn", "bun"],
        &["i", "install", "add", "ci", "update", "up", "upgrade", "dlx", "create", "global"],
    ),
    (&["yarn"], &[""]),
    (&["pip", "pip3", "pipx", "easy_install"], &["install", "download", "inject", "upgrade"]),
    (&["uv"], &["add", "sync", "pip", "tool"]),
    (
        &["poetry", "pdm", "pipenv", "bundle", "bundler", "composer", "mix", "rye", "hatch"],
        &["install", "add", "update", "require", "deps.get", "sync"],
    ),
    (&["cargo"], &["install", "add", "update", "fetch"]),
    (&["go"], &["get", "install"]),
    (&["gem", "luarocks", "opam", "cabal", "stack", "cpanm", "cpan", "raku", "zef", "nimble"], &["install", "update"]),
    (
        &[
            "apt", "apt-get", "aptitude", "dnf", "yum", "microdnf", "zypper", "brew", "port", "snap", "flatpak",
            "winget", "choco", "scoop", "pkg", "opkg",
        ],
        &["install", "upgrade", "dist-upgrade", "full-upgrade", "reinstall", "build-dep", "localinstall", "in", "tap"],
    ),
    (&["apk"], &["add", "upgrade"]),
    (&["pacman", "yay", "paru"], &["-S", "-Sy", "-Syu", "-U", "--sync"]),
    (&["dpkg"], &["-i", "--install"]),
    (&["rpm"], &["-i", "-U", "-ivh", "-Uvh", "--install", "--upgrade"]),
    (&["conda", "mamba", "micromamba"], &["install", "create", "update"]),
    (&["nix-env", "nix"], &["-i", "-iA", "--install", "profile"]),
    (&["dotnet"], &["add", "restore", "tool"]),
    (&["rustup", "nvm", "pyenv", "rbenv", "asdf", "mise", "sdk", "ghcup"], &["install", "toolchain", "use"]),
    (&["gh", "code", "krew"], &["extension", "--install-extension"]),
];

const KILLERS: &[&str] =
    &["kill", "pkill", "killall", "killall5", "skill", "xkill", "taskkill", "stop-process", "fuser", "slay"];

/// Modules and subcommands of interpreters that serve files.
const SERVERS: &[&str] = &["http.server", "SimpleHTTPServer", "httpd", "http-server", "serve", "webrick", "pyftpdlib"];

/// The words with which each package manager installs.
static INSTALLS: LazyLock<HashMap<&str, Vec<&[&str]>>> = LazyLock::new(|| {
    let mut found: HashMap<&str, Vec<&[&str]>> = HashMap::new();
    for (names, words) in INSTALLERS {
        for name in *names {
            found.entry(name).or_default().push(words);
        }
    }
    found
});

pub(crate) fn acts(name: &str, args: &[String]) -> Vec<Act> {
    let mut acts = Vec::new();
    let first = args.iter().find(|arg| !arg.starts_with('-'));
    let installs = INSTALLS.get(name).into_iter().flatten().any(|words| {
        words.iter().any(|word| match *word {
            "" => args.is_empty(),
            option if option.starts_with('-') => args.iter().any(|arg| arg == option),
            word => first.is_some_and(|first| first == word),
        })
    });
    let simulated = args
        .iter()
        .any(|arg| matches!(arg.as_str(), "-s" | "--simulate" | "--dry-run" | "--help" | "-h" | "--just-print"));
    if installs && !simulated {
        acts.push(Act::new("package-install", Kinds::default()));
    }
    let module = matches!(name, "python" | "python3" | "python2")
        && args.windows(3).chain(args.windows(2)).any(|pair| {
            matches!(pair, [option, module, ..] if option == "-m" && matches!(module.as_str(), "pip" | "ensurepip"))
                && args.iter().any(|arg| arg == "install")
        });
    if module {
        acts.push(Act::new("package-install", Kinds::default()));
    }
    if KILLERS.contains(&name)
        && !args.iter().any(|arg| matches!(arg.as_str(), "-l" | "-L" | "-0" | "--list"))
        && !args.is_empty()
    {
        acts.push(Act::new("kill", Kinds::default()));
    }
    let serves = match name {
        "python" | "python3" | "ruby" | "npx" | "busybox" => {
            args.iter().take(4).any(|arg| SERVERS.contains(&arg.as_str()))
        }
        "php" => args.iter().any(|arg| arg == "-S"),
        "serve" | "http-server" | "live-server" | "json-server" | "nginx" | "caddy" | "sshd" | "redis-server"
        | "postgres" | "mongod" | "mysqld" => true,
        _ => false,
    };
    if serves {
        acts.push(Act::new("listen", Kinds::default()));
    }
    acts
}
