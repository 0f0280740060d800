//! Which process did something, told apart from a later one that got the same number.

use std::fs;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A process, unique over restarts of the machine: a process id is reused, its start time within one boot is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Start time in clock ticks after boot (proc_pid_stat(5), field 22).
    pub start: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
    /// The PID namespace (namespaces(7)) in which `pid` means something.
    pub namespace: String,
}

/// What can be known of a process from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alive,
    Gone,
    /// It runs, or ran, in another PID namespace, or nothing can be learnt of processes here.
    Unknowable,
}

impl Process {
    /// This process.
    pub fn current() -> &'static Process {
        static CURRENT: OnceLock<Process> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let pid = std::process::id();
            Process { pid, start: start_of(pid).unwrap_or(0), boot: boot(), namespace: namespace() }
        })
    }

    /// Whether the process still runs.
    pub fn life(&self) -> Life {
        let here = Process::current();
        if self.boot != here.boot {
            Life::Gone
        } else if self.namespace != here.namespace || here.start == 0 {
            // The second: there is no /proc to ask.
            Life::Unknowable
        } else if start_of(self.pid) == Some(self.start) {
            Life::Alive
        } else {
            Life::Gone
        }
    }
}

/// The start time of a process that runs. A zombie runs no more.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses; it may hold anything, parentheses too.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

fn namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_that_had_its_number_does_not() {
        let here = Process::current();
        assert_eq!(here.life(), Life::Alive);
        let earlier = Process { start: here.start.wrapping_sub(1), ..here.clone() };
        assert_eq!(earlier.life(), Life::Gone, "the number alone must not count");
        let last_boot = Process { boot: "00000000-0000-0000-0000-000000000000".into(), ..here.clone() };
        assert_eq!(last_boot.life(), Life::Gone);
        let contained = Process { namespace: "pid:[1]".into(), ..here.clone() };
        assert_eq!(contained.life(), Life::Unknowable, "a number of another namespace means nothing here");
    }

    #[test]
    fn a_dead_child_is_gone_before_and_after_it_was_waited_for() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let process = Process { pid: child.id(), start: start_of(child.id()).unwrap(), ..Process::current().clone() };
        assert_eq!(process.life(), Life::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process.life(), Life::Gone);
    }
}
