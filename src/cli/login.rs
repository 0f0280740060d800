//! `portcullis login`: what an operator needs to reach the daemon.

use std::io::{self, IsTerminal, Write};

use crate::approval::operator_token;
use crate::cli::args::LoginArgs;
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::daemon::running;
use crate::gateway::Gateway;
use crate::state::StateDir;

pub(super) fn run(args: LoginArgs) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    let operator = gateway.own_operator()?;
    let agents = gateway.agent_tokens()?;
    let config = gateway.config();
    let places = &config.places;
    let state = StateDir::open(&places.state)?;
    let mut out = render::out();
    match running(state.path()) {
        Some(who) => writeln!(out, "daemon    {who}\nsocket    {}", places.socket().display())?,
        None => writeln!(out, "daemon    not running: start it with `portcullis serve`")?,
    }
    let file = state.keys().join("operator.token");
    writeln!(out, "you are   {operator}\ntoken     {}", file.display())?;
    // On a terminal a person reads it; anything else is asked for.
    if args.token || io::stdout().is_terminal() {
        writeln!(out, "          {}", operator_token(&state)?.expose())?;
    }
    for (agent, file) in agents {
        writeln!(out, "agent     {agent}: {}", file.display())?;
    }
    writeln!(
        out,
        "\nAn agent or a person of the configuration has a token of your choice; `token_sha256` there is what this prints:"
    )?;
    writeln!(out, "  printf %s \"$TOKEN\" | sha256sum")?;
    writeln!(out, "\nA token goes into a header, and never into a URL or onto a command line. In bash:")?;
    writeln!(out, "  curl -H @<(printf 'Authorization: Bearer '; cat {}) ADDRESS/api/approvals", file.display())?;
    Ok(exit::OK)
}
