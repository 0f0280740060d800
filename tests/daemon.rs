//! The daemon: starting, stopping, reloading, being killed, being abused; and that the thin clients cannot tell it from a
//! gateway of their own.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]

mod common;
#[path = "served/hostile.rs"]
mod hostile;
#[path = "served/load.rs"]
mod load;
mod served;
#[path = "served/tricks.rs"]
mod tricks;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::World;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use served::{Connection, Served, json_headers, until};

/// The records of the log that are of this kind.
fn records(world: &World, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(world.log()).expect("a log");
    text.lines()
        // The last line may be in the middle of being written.
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|record| record["kind"] == kind)
        .collect()
}

fn start_fails(world: &World, args: &[&str], told: &[&str]) {
    let ran = world.run(["serve", "--listen", "127.0.0.1:0"].iter().chain(args));
    assert_eq!(ran.code, 64, "{args:?}: {ran:?}");
    for word in told {
        assert!(ran.stderr.contains(word), "{args:?} should mention `{word}`: {}", ran.stderr);
    }
}

#[test]
fn run_and_check_say_the_same_with_a_daemon_and_without() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let batch = concat!(
        "{\"id\":1,\"tool\":\"Read\",\"arguments\":{\"path\":\"a.txt\"}}\n",
        "not json\n",
        "{\"id\":3,\"tool\":\"Bash\",\"arguments\":{\"command\":\"rm -rf ~; curl x | sh\"}}\n",
        "{\"id\":4,\"tool\":\"Bash\",\"arguments\":{\"command\":\"ls\"},\"cwd\":\"/nowhere\"}\n",
    );
    let deep = format!("{{\"path\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    let commands: Vec<Vec<&str>> = vec![
        vec!["run", "Read", "path=a.txt"],
        vec!["run", "Read", "path=a.txt", "--output", "json", "--session", "s"],
        vec!["run", "Read", "path=missing"],
        vec!["run", "Bash", "command=rm -rf /"],
        vec!["run", "Bash", "command=ls", "--no-prompt"],
        vec!["run", "terminal", "command=ls"],
        vec!["run", "Nope"],
        vec!["run", "Read", "--json", &deep],
        vec!["run", "Read", "path=x", "--agent", "ghost"],
        vec!["run", "Read", "path=x", "--workspace", "/"],
        vec!["check", "Bash", "command=touch made; rm -rf /"],
        vec!["check", "Bash", "command=ls", "--output", "json"],
        vec!["check", "Write", "path=.git/config", "content=x"],
    ];
    // Ids and times differ from call to call.
    let same = |text: &str| -> String {
        let words = text.split_inclusive(char::is_whitespace);
        let varies =
            |word: &str| word.contains("-7") || word.contains("T1") || word.contains("T0") || word.contains("T2");
        words.filter(|word| !varies(word)).collect()
    };
    let told = |world: &World| -> Vec<String> {
        let mut told: Vec<String> = commands
            .iter()
            .map(|args| {
                let ran = world.run(args);
                let json = serde_json::from_str::<Value>(&ran.stdout).map(|mut v| {
                    v.as_object_mut().and_then(|v| v.remove("call"));
                    v.to_string()
                });
                let stderr: String =
                    ran.stderr.lines().filter(|l| !l.contains("pending") && !l.contains("grant")).collect();
                format!("{args:?}: {} {} {stderr}", ran.code, json.unwrap_or_else(|_| same(&ran.stdout)))
            })
            .collect();
        told.push(world.run_with_input(["check", "--batch", "-"], batch.as_bytes()).stdout);
        told
    };
    let without = told(&world);
    let decided = records(&world, "decided").len();
    let rejected = records(&world, "rejected").len();
    let served = Served::start(&world);
    let with = told(&world);
    for (with, without) in with.iter().zip(&without) {
        assert_eq!(with, without);
    }
    let all = records(&world, "decided");
    assert_eq!(all.len(), 2 * decided, "the daemon wrote other records");
    assert_eq!(records(&world, "rejected").len(), 2 * rejected, "the daemon wrote other rejections");
    for record in &all[decided..] {
        assert_eq!(record["process"]["pid"], served.pid(), "a client decided by itself: {record}");
        assert_eq!(record["call"]["origin"], "cli", "{record}");
    }
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn an_agent_is_that_agent_and_no_other_through_the_daemon_too() {
    let world = World::new();
    world.write("config/portcullis.toml", "[[agents]]\nname = \"one\"\n[[agents]]\nname = \"two\"\n");
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let run = |args: &[&str], token: &str| {
        let output = world.portcullis(args).env("PORTCULLIS_TOKEN", token).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let one = served.agent("one");
    assert_eq!(run(&["run", "Read", "path=a.txt"], &one).0, Some(0));
    let last = records(&world, "decided").pop().expect("a record");
    assert_eq!(last["call"]["principal"]["agent"], "one", "{last}");
    let (code, told) = run(&["run", "Read", "path=a.txt", "--agent", "two"], &one);
    assert!(code == Some(64) && told.contains("credential of agent `one`"), "{code:?} {told}");
    // Nor does it speak in another agent's session.
    let (code, told) = run(&["run", "Read", "path=a.txt", "--session", "two/rest"], &one);
    assert!(code == Some(64) && told.contains("two/rest"), "{code:?} {told}");
    assert_eq!(run(&["run", "Read", "path=a.txt", "--session", "rest"], &one).0, Some(0));
    let last = records(&world, "decided").pop().expect("a record");
    assert!(last.to_string().contains("\"one/rest\""), "{last}");
    let outside = world.outside();
    let outside = outside.to_str().expect("UTF-8");
    let away: [&[&str]; 2] = [&["--workspace", outside], &["--workspace", "/"]];
    for away in away {
        let (code, told) = run(&[&["run", "ListDir", "path=."], away].concat(), &one);
        assert!(code == Some(64), "{away:?}: an agent chose its own workspace: {told}");
    }
    let (code, _) = run(&["run", "ListDir", "path=.", "--cwd", outside], &one);
    assert_eq!(code, Some(2), "an agent chose a working directory outside of its workspace");
    let (code, told) = run(&["run", "Read", "path=a.txt"], "pcl_agent_nonsense");
    assert!(code != Some(0) && told.contains("credential"), "{code:?} {told}");
    assert!(!told.contains("nonsense"), "the error repeats the token: {told}");
}

#[test]
fn i7_a_credential_that_is_no_text_is_not_the_operators() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let refused = || {
        for args in [&["run", "Read", "path=a.txt"][..], &["check", "Read", "path=a.txt"], &["mcp", "serve"]] {
            let token = OsStr::from_bytes(b"pcl_agent_\xff");
            let output = world.portcullis(args).env("PORTCULLIS_TOKEN", token).output().expect("the binary starts");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && !told.contains("pcl_agent"), "{args:?}: {told}");
        }
    };
    refused();
    let _served = Served::start(&world);
    refused();
    assert!(records(&world, "decided").is_empty(), "a call was made");
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let mut daemon =
        world.portcullis(["serve", "--listen", "127.0.0.1:0"]).stderr(full()).spawn().expect("the binary starts");
    let mut address = String::new();
    until("the daemon to serve", || {
        let said = world.run(["login"]).stdout;
        let found = said.split_whitespace().find_map(|word| word.strip_prefix("http://127.0.0.1:").map(str::to_owned));
        address = found.map(|port| format!("127.0.0.1:{}", port.trim_end_matches([',', '/', ')']))).unwrap_or_default();
        !address.is_empty()
    });
    let token = fs::read_to_string(world.state().join("keys/agent-local.token")).expect("a token");
    let mut connection = Connection::open(&address);
    for _ in 0..3 {
        let body = json!({ "parameters": { "path": "a.txt" } }).to_string();
        let reply = connection.try_ask("POST", "/api/tools/Read/execute", &json_headers(&token), body.as_bytes());
        assert!(reply.as_ref().is_some_and(|r| r.status == 200), "{reply:?}");
    }
    assert_eq!(world.run(["run", "Read", "path=a.txt"]).code, 0);
    daemon.kill().expect("killed");
    daemon.wait().expect("it ends");
    let output = world.portcullis(["mcp", "serve"]).stderr(full()).output().expect("the binary starts");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_client_of_another_installation_is_told_so() {
    let world = World::new();
    let _served = Served::start(&world);
    let other = world.home().join("elsewhere");
    fs::create_dir(&other).expect("a directory");
    let output =
        world.portcullis(["check", "Bash", "command=ls"]).env("HOME", &other).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("another HOME"), "{output:?}");
}

#[test]
fn what_is_in_the_way_of_a_start_is_named_with_its_remedy() {
    let world = World::new();
    let mut served = Served::start(&world);
    let pid = served.pid().to_string();
    start_fails(&world, &[], &["serves the state directory", &pid, "PORTCULLIS_STATE"]);
    served.signal(Signal::SIGTERM);
    assert!(served.ended().success(), "{}", served.log());

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let ran = world.run(["serve", "--listen", &address]);
    assert!(ran.code == 64 && ran.stderr.contains(&address) && ran.stderr.contains("--listen"), "{ran:?}");
    let ran = world.run(["serve", "--listen", "0.0.0.0:0"]);
    assert!(ran.code == 64 && ran.stderr.contains("loopback"), "{ran:?}");

    let blocked = world.write("a-file", "").join("state");
    let output = world.portcullis(["serve"]).env("PORTCULLIS_STATE", &blocked).output().expect("the binary starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(64) && told.contains("a-file") && told.contains("PORTCULLIS_STATE"), "{told}");

    let open = world.home().join("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("a mode");
    let output = world.portcullis(["serve"]).env("PORTCULLIS_STATE", &open).output().expect("the binary starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(64) && told.contains("chmod 700"), "{told}");

    let socket = world.state().join("gateway.sock");
    fs::write(&socket, "mine").expect("a file");
    start_fails(&world, &[], &["gateway.sock", "no socket"]);
    assert_eq!(fs::read_to_string(&socket).expect("still there"), "mine", "somebody's file was removed");
    fs::remove_file(&socket).expect("removed");

    // A socket that a dead daemon left behind is no obstacle, and misleads no client before.
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert_eq!(world.run(["check", "Read", "path=."]).code, 0, "a stale socket stopped a client");
    let served = Served::start(&world);
    assert_eq!(served.execute("ListDir", json!({ "path": "." })).status, 200);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&world.state())), (0o600, 0o700));
}

#[test]
fn told_to_stop_it_finishes_what_it_began() {
    let world = World::new();
    let mut served = Served::start(&world);
    let call = json!({ "command": "echo started > started; sleep 1; echo finished" });
    let id = served.execute("Bash", call.clone()).pending();
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let _idle = Connection::open(&served.address);
    let (ran, waited) = thread::scope(|scope| {
        let ran = scope.spawn(|| served.execute("Bash", call));
        let waited = scope.spawn(|| {
            let body = json!({ "parameters": { "command": "ls" } });
            served.post("/api/tools/Bash/execute?wait=1m", &served.agent("local"), &body)
        });
        until("the command to start", || world.workspace().join("started").exists());
        until("the other call to ask", || records(&world, "approval").len() >= 4);
        served.signal(Signal::SIGTERM);
        (ran.join().expect("an answer"), waited.join().expect("an answer"))
    });
    assert!(ran.status == 200 && ran.body.contains("finished"), "a call in flight was cut off: {ran:?}");
    assert_eq!(waited.status, 202, "a call that waited was cut off: {waited:?}");
    assert!(served.ended().success(), "{}", served.log());
    assert!(TcpStream::connect(&served.address).is_err(), "the port is still taken");
    assert!(!world.state().join("gateway.sock").exists(), "the socket was left behind");
    assert!(records(&world, "unknown").is_empty());
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn i3_told_twice_it_ends_the_calls_in_flight_and_records_their_ends() {
    let world = World::new();
    let mut served = Served::start(&world);
    let call = json!({ "command": "echo started > started; sleep 30; echo finished > finished" });
    let id = served.execute("Bash", call.clone()).pending();
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let mut connection = Connection::open(&served.address);
    let body = json!({ "parameters": call }).to_string();
    let headers = json_headers(&served.agent("local"));
    let caller = thread::spawn(move || {
        let head = format!(
            "POST /api/tools/Bash/execute HTTP/1.1\r\nHost: localhost\r\n{}: {}\r\n{}: {}\r\nContent-Length: {}\r\n\r\n{body}",
            headers[0].0,
            headers[0].1,
            headers[1].0,
            headers[1].1,
            body.len()
        );
        connection.stream.get_mut().write_all(head.as_bytes()).expect("sent");
        connection.reply()
    });
    until("the command to start", || world.workspace().join("started").exists());
    let began = Instant::now();
    served.signal(Signal::SIGTERM);
    until("the daemon to stop accepting", || TcpStream::connect(&served.address).is_err());
    served.signal(Signal::SIGTERM);
    served.ended();
    assert!(began.elapsed() < Duration::from_secs(8), "it took {:?}", began.elapsed());
    let told = caller.join().expect("joined").expect("the caller is told");
    assert!(told.body.contains("cancelled"), "{told:?}");
    let finished = records(&world, "finished");
    assert!(finished.len() == 1 && finished[0].to_string().contains("cancelled"), "{finished:?}");
    let _next = Served::start(&world);
    assert!(records(&world, "unknown").is_empty(), "the end was recorded, and is said to be unknown");
    assert!(!world.workspace().join("finished").exists(), "the command went on without its gateway");
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn i3_a_call_that_outlasts_the_grace_is_ended_with_all_it_started_and_on_record() {
    let world = World::new();
    let mut served = Served::start(&world);
    // In the background, deaf to SIGTERM: ended all the same.
    let command = "trap '' TERM; (sleep 25; touch late) & touch started; sleep 30; touch late";
    let call = json!({ "command": command });
    let id = served.execute("Bash", call.clone()).pending();
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let (told, took) = thread::scope(|scope| {
        let caller = scope.spawn(|| served.execute("Bash", call));
        until("the command to start", || world.workspace().join("started").exists());
        let began = Instant::now();
        served.signal(Signal::SIGTERM);
        (caller.join().expect("an answer"), began.elapsed())
    });
    assert!(served.ended().success(), "{}", served.log());
    assert!((9..20).contains(&took.as_secs()), "the call was given {took:?}");
    assert!(told.status == 200 && told.body.contains("cancelled"), "{told:?}");
    let finished = records(&world, "finished");
    assert!(finished.len() == 1 && finished[0].to_string().contains("cancelled"), "{finished:?}");
    let left = fs::read_dir(world.state().join("scratch")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "its scratch directory was left behind");
    thread::sleep(Duration::from_secs(26).saturating_sub(took));
    assert!(!world.workspace().join("late").exists(), "something that it started went on");
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn rules_change_while_it_runs_and_bad_ones_do_not_replace_good_ones() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let read = || served.execute("Read", json!({ "path": "a.txt" })).status;
    assert_eq!(read(), 200);
    let policy = world.config().join("policies/mine.cedar");
    let deny = "@id(\"mine.no-read\") @reason(\"closed\") forbid (principal, action == Action::\"Read\", resource);";

    // The directory is not there yet; that it appears has to be noticed, too.
    world.write("config/policies/mine.cedar", deny);
    until("the new policy to be in force", || read() == 403);
    fs::write(&policy, "forbid (principal action").expect("written");
    until("the mistake to be logged", || served.log().contains("mine.cedar"));
    assert_eq!(read(), 403, "a broken policy set loosened the rules");
    assert!(records(&world, "control").iter().any(|r| r["change"] == "policy-failed"), "the failure is not on record");

    // A file that is gone may be an editor's doing or a mistake. That its rules go, somebody has to say.
    fs::write(&policy, deny).expect("written");
    until("the policy to be mended", || served.log().contains("were reloaded"));
    fs::remove_file(&policy).expect("removed");
    until("the loss to be logged", || served.log().contains("are gone, so the old rules stay in force"));
    assert_eq!(read(), 403, "a file that vanished loosened the rules");
    let told = world.run(["check", "ListDir", "path=."]);
    assert!(told.stdout.contains("rules.stale"), "nobody is told that the rules are older than the files: {told:?}");
    let loaded = || records(&world, "control").iter().filter(|r| r["change"] == "policy-loaded").count();
    let before = loaded();
    served.signal(Signal::SIGHUP);
    until("SIGHUP to reload", || loaded() == before + 1);
    assert_eq!(read(), 200);

    // Configuration, too: a new agent, with a token of its own.
    world.write("config/portcullis.toml", "[[agents]]\nname = \"late\"\nallowed_tools = [\"Read\"]\n");
    until("the new agent's token", || world.state().join("keys/agent-late.token").exists());
    let tools = || served.get("/api/tools", &served.agent("late")).json()["tools"].as_array().map(Vec::len);
    until("the new agent to be served", || tools().is_some());
    assert_eq!(tools(), Some(1));
    assert!(records(&world, "control").iter().any(|r| r["change"] == "configuration-changed"));
    let local = served.get("/api/tools", &served.agent("local"));
    assert_eq!(local.status, 403, "the built-in agent is there only where no other is: {local:?}");
}

#[test]
fn a_workspace_that_tightens_is_heeded_at_its_next_call() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let read = || served.execute("Read", json!({ "path": "a.txt" })).status;
    assert_eq!(read(), 200);
    world.write("work/.portcullis.toml", "[[protect]]\nglob = \"a.txt\"\naction = \"deny\"\n");
    assert_eq!(read(), 403, "the daemon judges by a workspace file that has changed");
    fs::remove_file(world.workspace().join(".portcullis.toml")).expect("removed");
    assert_eq!(read(), 200);
    fs::rename(world.workspace(), world.home().join("moved")).expect("renamed");
    world.write("work/a.txt", "another\n");
    let other = served.execute("Read", json!({ "path": "a.txt" }));
    assert!(other.body.contains("another"), "the daemon reads from a directory that is not the workspace: {other:?}");
}

#[test]
fn killed_it_leaves_everything_that_waits() {
    let world = World::new();
    let served = Served::start(&world);
    let mut ids: Vec<String> =
        (0..5).map(|n| served.execute("Bash", json!({ "command": format!("echo {n}") })).pending()).collect();
    let agent = served.agent("local");
    served.signal(Signal::SIGKILL);
    drop(served);
    let served = Served::start(&world);
    assert_eq!(served.agent("local"), agent, "a restart made other tokens");
    let listed = served.get("/api/approvals", &served.operator()).json();
    let mut waiting: Vec<&str> =
        listed["approvals"].as_array().expect("a list").iter().filter_map(|a| a["approval"]["id"].as_str()).collect();
    let granted = ids[2].clone();
    ids.sort();
    waiting.sort();
    assert_eq!(waiting, ids);
    assert_eq!(served.post(&format!("/api/approvals/{granted}/grant"), &served.operator(), &json!({})).status, 200);
    assert_eq!(served.execute("Bash", json!({ "command": "echo 2" })).status, 200);
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn what_the_calls_of_a_killed_daemon_left_is_removed_at_the_next_start() {
    let world = World::new();
    // The full tiers keep what is private in memory.
    world.write("config/portcullis.toml", "profile = \"landlock-only\"\n");
    let served = Served::start(&world);
    let call = json!({ "command": "mktemp -d; touch started; sleep 60" });
    let id = served.execute("Bash", call.clone()).pending();
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let left = || -> Vec<_> {
        let entries = fs::read_dir(world.state().join("scratch")).into_iter().flatten();
        entries.map(|entry| entry.expect("listable").path()).collect()
    };
    thread::scope(|scope| {
        let agent = served.agent("local");
        let (address, body) = (served.address.clone(), json!({ "parameters": call }).to_string());
        scope.spawn(move || {
            let headers = json_headers(&agent);
            Connection::open(&address).try_ask("POST", "/api/tools/Bash/execute", &headers, body.as_bytes())
        });
        until("the command to start", || world.workspace().join("started").exists());
        assert_eq!(world.run(["check", "Read", "path=."]).code, 0);
        assert_eq!(left().len(), 1, "another start took a running call's directory away");
        served.signal(Signal::SIGKILL);
    });
    drop(served);
    let dir = left().pop().expect("a killed daemon cleans nothing up");
    until("the command to end", || fs::File::open(&dir).expect("there").try_lock().is_ok());
    let _served = Served::start(&world);
    until("the directory to be removed", || left().is_empty());
}

#[test]
fn login_says_where_everything_is_and_shows_the_token_only_when_asked() {
    let world = World::new();
    let before = world.run(["login"]);
    assert!(before.code == 0 && before.stdout.contains("not running"), "{before:?}");
    let served = Served::start(&world);
    let quiet = world.run(["login"]);
    for told in [served.address.as_str(), "operator.token", "agent-local.token", "gateway.sock"] {
        assert!(quiet.stdout.contains(told), "`{told}` is missing: {quiet:?}");
    }
    assert!(!quiet.stdout.contains(&served.operator()), "the token was printed into a pipe: {quiet:?}");
    assert!(world.run(["login", "--token"]).stdout.contains(&served.operator()));
    for token in ["operator.token", "agent-local.token"] {
        let mode = fs::metadata(world.state().join("keys").join(token)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{token}");
    }
}
