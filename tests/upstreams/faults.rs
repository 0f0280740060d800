//! Servers that do what they should not: their callers get a clear error in time, and nobody else notices.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{call, with_server, world};

/// A fault, a part of the answer, and whether the answer is an error.
const FAULTS: &[(&str, &str, bool)] = &[
    ("die", "exit code 7", true),
    ("mute", "did not answer within 3 s", true),
    ("endless", "more than 16 MiB", true),
    ("large", "more than 16 MiB", true),
    ("long-text", "truncated", false),
    ("garbage", "lines that are no messages", true),
    ("no-result", "neither a result nor an error", true),
    ("twice", "first", false),
    ("errors", "hi", false),
    ("drip", "did not answer within 3 s", true),
    ("asks", "-32601", false),
];

#[test]
fn a_fault_is_told_clearly_and_in_time() {
    for (fault, said, is_error) in FAULTS {
        let world = with_server(&format!("FAULT = \"{fault}\""));
        let began = Instant::now();
        let ran = call(&world, "mcp__fx__echo", json!({ "text": "hi" }));
        let told = format!("{}{}", ran.stdout, ran.stderr);
        println!(
            "{fault:<10} {:>5} ms  exit {}  {}",
            began.elapsed().as_millis(),
            ran.code,
            told.lines().next().unwrap_or("")
        );
        assert!(told.contains(said), "{fault}: {said} is not in: {}", &told[..told.len().min(2_000)]);
        assert_eq!(ran.code != 0, *is_error, "{fault}: {}", ran.code);
        assert!(began.elapsed() < Duration::from_secs(40), "{fault} took {:?}", began.elapsed());
        assert!(told.len() < 400_000, "{fault}: {} bytes were passed on", told.len());
    }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    for (fault, said) in [("no-start", "cannot find my configuration"), ("many", "more than 2000 tools")] {
        let world = world();
        let table =
            format!("[upstreams.fx]\ncommand = \"python3\"\nargs = [\"server.py\"]\nenv = {{ FAULT = \"{fault}\" }}\n");
        world.write("config/portcullis.toml", table);
        let doctor = world.run(["mcp", "doctor"]);
        assert!(doctor.stdout.contains(said), "{fault}: {doctor:?}");
        assert_eq!(doctor.code != 0, fault == "no-start", "{doctor:?}");
    }
}
