//! Whatever goes wrong, the program is told not to go on, in the form that it honours.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Ran, World};
use crate::simulator::{Does, Ended, does};
use crate::support::{HOSTS, event, words};

/// A failure: its name, and what it does to the world and to the event. None where it cannot be had here.
type Failure = (&'static str, fn(&World, Vec<u8>) -> Option<(Vec<u8>, Option<UnixListener>)>);

const FAILURES: &[Failure] = &[
    ("no input", |_, _| Some((Vec::new(), None))),
    ("half an event", |_, event| Some((event[..event.len() / 2].to_owned(), None))),
    ("no JSON", |_, _| Some((b"rm -rf /".to_vec(), None))),
    ("not an object", |_, _| Some((b"[1]".to_vec(), None))),
    ("a key twice", |_, event| {
        let text = String::from_utf8(event).unwrap();
        Some((text.replacen('{', "{\"x\": 1, \"x\": 2,", 1).into_bytes(), None))
    }),
    ("no UTF-8", |_, event| Some(([&b"{\"a\": \"\xff\","[..], &event[1..]].concat(), None))),
    ("too deep", |_, event| {
        let deep = format!("{{\"x\": {}{},", "[".repeat(100_000), "]".repeat(100_000));
        Some(([deep.as_bytes(), &event[1..]].concat(), None))
    }),
    ("too long", |_, event| {
        let long = format!("{{\"x\": \"{}\",", "y".repeat(9 << 20));
        Some(([long.as_bytes(), &event[1..]].concat(), None))
    }),
    ("no session", |_, event| {
        let mut value: serde_json::Value = serde_json::from_slice(&event).unwrap();
        for name in ["session_id", "sessionId", "sessionID", "session", "conversation_id", "trajectory_id", "taskId"] {
            value.as_object_mut().unwrap().remove(name);
        }
        Some((value.to_string().into_bytes(), None))
    }),
    ("bad configuration", |world, event| {
        world.write("config/portcullis.toml", "colour = 1\n");
        Some((event, None))
    }),
    ("bad policy", |world, event| {
        world.write("config/policies/x.cedar", "permit (principal, action, resource");
        Some((event, None))
    }),
    ("no state", |world, event| {
        world.write("state", "a file in its place");
        Some((event, None))
    }),
    ("open state", |world, event| {
        fs::create_dir_all(world.state()).unwrap();
        fs::set_permissions(world.state(), fs::Permissions::from_mode(0o777)).unwrap();
        Some((event, None))
    }),
    ("damaged books", |world, event| {
        world.run(["approvals", "list"]);
        fs::write(world.state().join("state.db"), vec![7; 9000]).unwrap();
        Some((event, None))
    }),
    ("deaf gateway", |world, event| Some((event, Some(socket(world))))),
    ("rude gateway", |world, event| {
        let listener = socket(world);
        let answering = listener.try_clone().unwrap();
        thread::spawn(move || {
            for stream in answering.incoming().take(1) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let body = "{\"decision\": \"allow\"}";
                let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            }
        });
        Some((event, Some(listener)))
    }),
    ("fainting gateway", |world, event| {
        let listener = socket(world);
        let answering = listener.try_clone().unwrap();
        thread::spawn(move || drop(answering.accept()));
        Some((event, Some(listener)))
    }),
];

/// A socket where the gateway's is looked for.
fn socket(world: &World) -> UnixListener {
    // The client's credential has to be there.
    world.run(["approvals", "list"]);
    UnixListener::bind(world.state().join("gateway.sock")).unwrap()
}

#[test]
fn i2_whatever_goes_wrong_blocks_in_the_form_that_the_program_honours() {
    let rows: Vec<String> = thread::scope(|scope| {
        let check = |host: &'static str, name: &'static str| {
            let mut row = format!("{host:<10}");
            for (failure, make) in FAILURES {
                let world = World::new();
                let Some((bytes, held)) = make(&world, event(&world, host, name, "ls")) else { continue };
                let mut words = words(host, name);
                words.extend(["--deadline", "1"]);
                let ran = world.run_with_input(words, &bytes);
                drop(held);
                let does = acts_on(host, name, &ran);
                assert_eq!(does, Does::Blocks, "{host}, {failure}: {ran:?}");
                row.push_str(&format!(" {does:?}"));
            }
            row
        };
        let started: Vec<_> = HOSTS.iter().map(|(host, name)| scope.spawn(move || check(host, name))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    println!("failures: {}", FAILURES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
    rows.iter().for_each(|row| println!("{row}"));
}

fn acts_on(host: &str, name: &str, ran: &Ran) -> Does {
    let ended = Ended { code: Some(ran.code), stdout: ran.stdout.clone(), stderr: ran.stderr.clone() };
    does(host, name, "default", &ended)
}

#[test]
fn i2_an_unknown_event_or_mode_blocks() {
    for (host, name) in HOSTS {
        let world = World::new();
        let mut value: serde_json::Value = serde_json::from_slice(&event(&world, host, name, "ls")).unwrap();
        let mut words = words(host, name);
        let places = ["hook_event_name", "event_type", "event", "agent_action_name", "hookName"];
        match places.iter().find(|place| value.get(**place).is_some()) {
            Some(place) => value[place] = "TomorrowsEvent".into(),
            None => words = vec!["hook", host, "--event", "TomorrowsEvent"],
        }
        let ran = world.run_with_input(words.clone(), value.to_string().as_bytes());
        assert_eq!(acts_on(host, name, &ran), Does::Blocks, "{host}: {ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("TomorrowsEvent"), "{host}: {ran:?}");
    }
    for host in ["claude", "codex"] {
        let world = World::new();
        let mut value: serde_json::Value = serde_json::from_slice(&event(&world, host, "PreToolUse", "ls")).unwrap();
        value["permission_mode"] = "yolo".into();
        let ran = world.run_with_input(["hook", host], value.to_string().as_bytes());
        assert!(ran.code == 2 && ran.stderr.contains("`yolo`"), "{host}: {ran:?}");
    }
}

#[test]
fn i2_a_wrong_command_line_blocks() {
    for words in [&["hook"][..], &["hook", "nobody"], &["hook", "claude", "--bogus"], &["hook", "claude", "--asks"]] {
        let ran = World::new().run(words);
        assert!(ran.code == 2 && !ran.stderr.is_empty(), "{words:?}: {ran:?}");
    }
    // As where the one who started it gave it no place for its files.
    let world = World::new();
    let mut command = world.portcullis(["hook", "claude"]);
    command.env_remove("HOME").env_remove("PORTCULLIS_CONFIG").env_remove("PORTCULLIS_STATE");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&event(&world, "claude", "PreToolUse", "ls")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// What no handler can catch: the process that judges dies.
#[test]
fn i2_the_death_of_the_judging_process_blocks() {
    let mut died = 0;
    for (host, name) in HOSTS {
        let world = World::new();
        world.run(["approvals", "list"]);
        // Somebody holds the books, so that judging takes a while.
        let books = rusqlite::Connection::open(world.state().join("state.db")).unwrap();
        books.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let mut command = world.portcullis(words(host, name));
        let mut hook = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(&event(&world, host, name, "ls")).unwrap();
        let judge = child_of(hook.id());
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(judge), nix::sys::signal::Signal::SIGSEGV).unwrap();
        let output = hook.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ended = Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert_eq!(does(host, name, "default", &ended), Does::Blocks, "{host}: {ended:?}");
        died += usize::from(ended.stderr.contains("died"));
    }
    // On a machine that is very busy one or another may have given up on the books before.
    assert!(died > HOSTS.len() / 2, "only {died} died");
}

/// The process that another one started.
fn child_of(parent: u32) -> i32 {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        for task in fs::read_dir(format!("/proc/{parent}/task")).unwrap().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            if let Some(child) = children.split_whitespace().next() {
                let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                if command.windows(10).any(|part| part == b"hook-judge") {
                    return child.parse().unwrap();
                }
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    panic!("the hook started no process to judge");
}

#[test]
fn i2_an_answer_that_cannot_be_written_blocks() {
    // Every program whose answer stands on standard output; /dev/full takes none.
    for (host, name) in HOSTS {
        let world = World::new();
        let mut command = world.portcullis(words(host, name));
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut hook = command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(&event(&world, host, name, "rm -rf /")).unwrap();
        let output = hook.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{host}: {output:?}");
    }
}

/// A full disk, where this test may mount one.
#[test]
fn i2_a_full_disk_blocks() {
    let world = World::new();
    fs::create_dir_all(world.state()).unwrap();
    let options = Some("size=64k,mode=700");
    if let Err(error) =
        nix::mount::mount(Some("tmpfs"), &world.state(), Some("tmpfs"), nix::mount::MsFlags::empty(), options)
    {
        eprintln!("SKIPPED: a tmpfs cannot be mounted here ({error}); run it as root");
        return;
    }
    let mut does = Vec::new();
    for (host, name) in HOSTS {
        let ran = world.run_with_input(words(host, name), &event(&world, host, name, "ls"));
        does.push((host, acts_on(host, name, &ran), ran));
    }
    nix::mount::umount(&world.state()).unwrap();
    for (host, does, ran) in does {
        assert_eq!(does, Does::Blocks, "{host}: {ran:?}");
    }
}

/// Every event of every program with every byte of it changed, cut off or doubled, while the gateway says nothing: nothing of
/// it goes on, and nothing panics.
#[test]
fn i2_no_damage_to_an_event_lets_anything_go_on() {
    let mut tried = 0_u32;
    for (host, _) in HOSTS {
        let known = portcullis::hook::hosts::named(host).unwrap();
        for (name, path) in crate::support::fixtures(host) {
            let event = if *host == "opencode" { name.as_str() } else { name.split('.').next().unwrap() };
            let named = (*host == "copilot").then(|| event.to_owned());
            let terms = portcullis::hook::Terms { event: named, ..Default::default() };
            let whole = fs::read(path).unwrap();
            for at in 0..whole.len() {
                let mut changed = whole.clone();
                changed[at] ^= 1 << (at % 8);
                let doubled = [&whole[..=at], &whole[at..]].concat();
                for bytes in [&changed, &doubled, &whole[..at].to_vec()] {
                    let silent = |_: &_| Err("the gateway is gone".to_owned());
                    let told = portcullis::hook::answer(known, &terms, bytes, std::path::Path::new("/w"), silent);
                    let ended = Ended { code: Some(told.code.into()), stdout: told.stdout, stderr: told.stderr };
                    let acted = does(host, event, "default", &ended);
                    assert_eq!(acted, Does::Blocks, "{host} {name}: {}", String::from_utf8_lossy(bytes));
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} damaged events, none of which went on");
}
