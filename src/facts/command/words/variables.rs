//! Variables that name programs, or that change which programs run.

use super::text::{has_unknown, is_known};
use crate::facts::command::effects::git;
use crate::facts::command::effects::target::Kinds;
use crate::facts::command::languages::consoles;
use crate::facts::command::languages::inline;
use crate::facts::command::notes::Act;
use crate::facts::command::scripts::makefile;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::wrappers::launchers;
use crate::facts::command::wrappers::options::shell_words;

/// Variables whose value a shell or program runs as a command line: when, for assignments that last.
const COMMANDS: &[&str] = &[
    "PROMPT_COMMAND",
    "PAGER",
    "MANPAGER",
    "GIT_PAGER",
    "SYSTEMD_PAGER",
    "AWS_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
    "PSQL_PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "SUDO_EDITOR",
    "FCEDIT",
    "KUBE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "RSYNC_RSH",
    "CVS_RSH",
    "SVN_SSH",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "BROWSER",
    "RUSTC_WRAPPER",
    "FZF_DEFAULT_COMMAND",
    "TAR_OPTIONS",
    "MAKEFLAGS",
    "PERL5DB",
    "BASH_ENV",
    "ENV",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "RUSTC",
    "CC",
    "CXX",
    "LD",
    "npm_config_script_shell",
    "TEXEDIT",
    "GZIP",
    "GOFLAGS",
    "MANOPT",
    "VIMINIT",
    "EXINIT",
    "GVIMINIT",
    "PERL5OPT",
    "RUSTC_WORKSPACE_WRAPPER",
    "RESTIC_PASSWORD_COMMAND",
    "BORG_PASSCOMMAND",
    "BORG_RSH",
    "PSQL_EDITOR",
    "SYSTEMD_EDITOR",
    "HGEDITOR",
    "SVN_EDITOR",
    "CVSEDITOR",
    "MANLESS",
    "ANSIBLE_SSH_EXECUTABLE",
    "FZF_CTRL_T_COMMAND",
    "FZF_ALT_C_COMMAND",
];

/// Variables that decide which code any later program loads.
const LOADERS: &[&str] = &[
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "PYTHONPATH",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "BASH_ENV",
    "GIT_EXEC_PATH",
    "GCONV_PATH",
    "PYTHONSTARTUP",
];

/// Places that anyone, or the agent itself, can write.
const WRITABLE: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// A lasting assignment.
pub(crate) fn assigned(walker: &mut Walker<'_>, name: &str, value: &str) {
    if name == "PS4" || name == "PS1" || name == "PS0" || name == "PS2" {
        if value.contains("$(") || value.contains('`') {
            walker.subshell(|walker| walker.prompt(value));
        }
        return;
    }
    if name == "HISTFILE" || (matches!(name, "HISTSIZE" | "HISTFILESIZE") && value == "0") {
        walker.event("history-off");
    }
    if COMMANDS.contains(&name) || is_cargo_program(name) {
        run_value(walker, name, value);
    } else if name.starts_with("GIT_CONFIG_VALUE_") {
        run_value(walker, name, value.trim_start_matches('!'));
    } else if name == "GIT_CONFIG_PARAMETERS" {
        git::parameters(walker, value);
    }
    if LOADERS.contains(&name) {
        loader(walker, name, value);
    }
}

/// Assignments before a program: the same, for that program.
pub(crate) fn for_program(walker: &mut Walker<'_>, program: &str, assignments: &[(String, String)]) {
    for (name, value) in assignments {
        if name == "HOME" || name == "IFS" {
            continue;
        }
        if name == "PS4" && matches!(program, "bash" | "sh") {
            walker.subshell(|walker| walker.prompt(value));
        }
    }
}

/// `CARGO_TARGET_<triple>_RUNNER` and its like.
fn is_cargo_program(name: &str) -> bool {
    name.strip_prefix("CARGO_").is_some_and(|rest| {
        ["RUNNER", "LINKER", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "_RUSTC", "RUSTDOC", "CREDENTIAL_PROVIDER"]
            .iter()
            .any(|end| rest.ends_with(end))
    })
}

fn run_value(walker: &mut Walker<'_>, name: &str, value: &str) {
    let text = match name {
        "LESSOPEN" | "LESSCLOSE" => value.trim_start_matches(['|', '-']),
        "BASH_ENV" | "ENV" | "PYTHONSTARTUP" | "NODE_OPTIONS" | "TAR_OPTIONS" | "MAKEFLAGS" | "GZIP" | "GOFLAGS"
        | "MANOPT" | "VIMINIT" | "EXINIT" | "GVIMINIT" | "PERL5OPT" => {
            return file_value(walker, name, value);
        }
        _ => value,
    };
    if has_unknown(text) && !is_known(text) && text.chars().count() < 3 {
        return;
    }
    walker.subshell(|walker| walker.run_text(text));
    // A program of one's own in a variable's place is worth a question; a usual one is not.
    let first = text.split_whitespace().next().unwrap_or_default();
    let base = first.rsplit('/').next().unwrap_or_default();
    if matches!(
        base,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "python"
            | "python3"
            | "perl"
            | "ruby"
            | "node"
            | "curl"
            | "wget"
            | "nc"
    ) || WRITABLE.iter().any(|place| first.starts_with(place))
    {
        walker.acts_on(&[Act::new("environment-program", Kinds::default())]);
    }
}

fn file_value(walker: &mut Walker<'_>, name: &str, value: &str) {
    match name {
        "BASH_ENV" | "ENV" => {
            if value.contains("$(") || value.contains('`') {
                walker.subshell(|walker| walker.prompt(value));
            }
            let target = walker.target(value);
            walker.with_file(&target, |walker, text| walker.subshell(|walker| walker.run_text(text)));
        }
        // Options that stand before the program's own.
        "TAR_OPTIONS" => launchers::run(walker, "tar", &shell_words(value)),
        "MAKEFLAGS" => makefile::make(walker, &shell_words(value)),
        "GOFLAGS" => launchers::run(walker, "go", &shell_words(value)),
        "MANOPT" => launchers::run(walker, "man", &shell_words(value)),
        "VIMINIT" | "EXINIT" | "GVIMINIT" => {
            for line in value.lines() {
                consoles::ex_command(walker, line);
            }
        }
        // `-Mmodule;code` and `-e` of an interpreter.
        "PERL5OPT" => {
            let code = value.trim_start_matches("-M").split_once(';').map_or("", |(_, code)| code);
            inline::run(walker, inline::Language::Perl, code);
        }
        _ => {}
    }
}

fn loader(walker: &mut Walker<'_>, name: &str, value: &str) {
    let risky = match name {
        "PATH" => value
            .split(':')
            .take_while(|part| !part.starts_with("/usr") && !part.starts_with("/bin"))
            .any(|part| part.is_empty() || part == "." || WRITABLE.iter().any(|place| part.starts_with(place))),
        "NODE_OPTIONS" => value.contains("--require") || value.contains("-r ") || value.contains("--import"),
        "LD_LIBRARY_PATH" | "PYTHONPATH" | "PERL5LIB" | "RUBYLIB" => WRITABLE.iter().any(|place| value.contains(place)),
        _ => !value.is_empty(),
    };
    if risky {
        walker.acts_on(&[Act::new("environment-loader", Kinds::default())]);
    }
}
