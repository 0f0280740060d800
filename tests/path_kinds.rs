//! Every kind of odd file and odd name, through everything that looks at a path: Read, Write, Edit, ListDir, Glob and Grep by
//! their handles, and Bash by the names in a command.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use portcullis::facts::path::{
    Access, Handle, Opened, PathFact, ProtectedAction, Protection, Resolver, standard_rules,
};
use portcullis::facts::{Scope, Surroundings};

struct Scene {
    top: tempfile::TempDir,
    resolver: Resolver,
}

impl Scene {
    fn new(fill: impl FnOnce(&Path)) -> Self {
        let top = tempfile::tempdir().unwrap();
        for directory in ["w/src", "home/.ssh", "state/audit", "w/.git/hooks"] {
            fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        for (file, text) in [
            ("w/src/a", "plain"),
            ("home/.ssh/id_rsa", "key"),
            ("state/state.db", "state"),
            ("state/audit/log", "log"),
            ("state/binary", "binary"),
            ("w/.git/hooks/pre-commit", "hook"),
            ("w/.git/HEAD", "ref"),
        ] {
            fs::write(top.path().join(file), text).unwrap();
        }
        fill(top.path());
        let mut here = Surroundings::new(top.path().join("w"), top.path().join("home"));
        here.gateway.push(top.path().join("state"));
        let resolver = Resolver::open(&here, Protection::new(standard_rules()).unwrap()).unwrap();
        Scene { top, resolver }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn look(&self, given: &str, access: Access) -> (PathFact, Option<Handle>) {
        self.resolver.look("path", given, access, &self.path("w"))
    }

    fn in_command(&self, given: &str, access: Access) -> PathFact {
        self.resolver.look_in_command(self.path("w").join(given).to_str().unwrap(), access)
    }

    /// The facts of a name for Read, ListDir, Glob and Grep; Write and Edit; and a command that reads or writes it.
    fn facts(&self, given: &str) -> [PathFact; 4] {
        [
            self.look(given, Access::Read).0,
            self.look(given, Access::Write).0,
            self.in_command(given, Access::Read),
            self.in_command(given, Access::Write),
        ]
    }

    /// What Grep would show of a file, by a walk from the workspace.
    fn grep(&self, name: &str) -> Option<Opened> {
        let mut walk = self.look(".", Access::Read).1.unwrap().walk(false, usize::MAX).unwrap();
        let entry = walk.by_ref().find(|entry| entry.path == Path::new(name))?;
        Some(walk.open(&entry))
    }
}

fn action(fact: &PathFact) -> Option<ProtectedAction> {
    fact.protected.as_ref().map(|protected| protected.action)
}

#[test]
fn i7_a_hard_link_of_the_gateways_own_is_the_gateways() {
    let scene = Scene::new(|top| {
        for (own, link) in [("state/state.db", "w/a"), ("state/audit/log", "w/src/b"), ("state/binary", "w/c")] {
            fs::hard_link(top.join(own), top.join(link)).unwrap();
        }
        symlink("src/b", top.join("w/soft")).unwrap();
    });
    for name in ["a", "src/b", "c", "soft", "./src/../a"] {
        for fact in scene.facts(name) {
            assert_eq!((fact.scope, &fact.lands), (Scope::Gateway, &None), "{name}: {fact:?}");
        }
    }
    for name in ["a", "src/b", "c"] {
        assert!(matches!(scene.grep(name), Some(Opened::Protected)), "{name} is shown by Grep");
    }
}

#[test]
fn i7_links_and_proc_lead_to_the_gateways_own_under_its_name() {
    let scene = Scene::new(|top| {
        symlink(top.join("state"), top.join("w/link")).unwrap();
        symlink("../../state/audit", top.join("w/src/audit")).unwrap();
    });
    let state = scene.path("state/state.db").display().to_string();
    for given in [
        "link/state.db".to_owned(),
        "link/new/policy.cedar".to_owned(),
        "src/audit/log".to_owned(),
        "../state/state.db".to_owned(),
        state.clone(),
        format!("/proc/self/root{state}"),
        format!("/proc/1/root{state}"),
        format!("/proc/{}/root{state}", std::process::id()),
        format!("/proc/self/cwd/../../..{state}"),
        format!("//{state}/."),
    ] {
        if given.starts_with("/proc/1/") && fs::read_link("/proc/1/root").is_err() {
            eprintln!("NOT PROVED: /proc/1/root, which leads nowhere for this user");
            continue;
        }
        for access in [Access::Read, Access::Write, Access::Delete, Access::Execute] {
            let tool = scene.look(&given, access).0;
            let command = scene.in_command(&given, access);
            let through_cwd = given.contains("/cwd/");
            assert!(tool.scope == Scope::Gateway || through_cwd && tool.scope != Scope::Workspace, "{given}: {tool:?}");
            assert!(command.scope == Scope::Gateway || through_cwd, "{given}: {command:?}");
        }
    }
}

#[test]
fn i7_a_bind_mount_shows_what_it_hides() {
    // Of this thread alone.
    std::thread::spawn(|| {
        let none: Option<&str> = None;
        let own = unshare(CloneFlags::CLONE_NEWNS);
        if let Err(reason) = own.and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)) {
            eprintln!("NOT PROVED: bind mounts, which cannot be made here ({reason})");
            return;
        }
        let scene = Scene::new(|top| {
            for (of, at) in
                [("state", "w/m1"), ("state/audit", "w/m2"), ("home/.ssh", "w/m3"), ("w/.git/hooks", "w/m4")]
            {
                fs::create_dir(top.join(at)).unwrap();
                mount(Some(&top.join(of)), &top.join(at), none, MsFlags::MS_BIND, none).unwrap();
            }
        });
        for name in ["m1/state.db", "m1/audit/log", "m2/log"] {
            assert!(
                scene.facts(name).iter().all(|fact| fact.scope == Scope::Gateway),
                "{name}: {:?}",
                scene.facts(name)
            );
            assert!(matches!(scene.grep(name), None | Some(Opened::Protected)), "{name} is shown by Grep");
        }
        assert_eq!(scene.look("m1/policies/new.cedar", Access::Write).0.scope, Scope::Gateway, "what is to be made");
        assert_eq!(action(&scene.look("m3/id_rsa", Access::Read).0), Some(ProtectedAction::Deny));
        assert!(matches!(scene.grep("m3/id_rsa"), Some(Opened::Protected)));
        assert_eq!(action(&scene.look("m4/pre-commit", Access::Write).0), Some(ProtectedAction::Deny));
        assert_eq!(action(&scene.look("m4/post-merge", Access::Write).0), Some(ProtectedAction::Deny), "a new hook");
        assert_eq!(scene.look("src/a", Access::Write).0.scope, Scope::Workspace);
        for at in ["w/m1", "w/m2", "w/m3", "w/m4"] {
            umount2(&scene.path(at), MntFlags::MNT_DETACH).unwrap();
        }
    })
    .join()
    .unwrap();
}

#[test]
fn hard_links_of_protected_files_are_as_protected() {
    let scene = Scene::new(|top| {
        fs::hard_link(top.join("home/.ssh/id_rsa"), top.join("w/key")).unwrap();
        fs::hard_link(top.join("w/.git/hooks/pre-commit"), top.join("w/src/hook")).unwrap();
        fs::hard_link(top.join("w/src/a"), top.join("w/src/same")).unwrap();
    });
    assert!(scene.facts("key").iter().all(|fact| action(fact) == Some(ProtectedAction::Deny)));
    assert!(matches!(scene.grep("key"), Some(Opened::Protected)));
    let [read, write, command_reads, command_writes] = scene.facts("src/hook");
    assert_eq!([action(&read), action(&command_reads)], [None, None], "a hook may be read");
    assert_eq!([action(&write), action(&command_writes)], [Some(ProtectedAction::Deny); 2]);
    assert!(scene.facts("src/same").iter().all(|fact| action(fact).is_none()), "an ordinary hard link is no matter");
    assert!(matches!(scene.grep("src/same"), Some(Opened::File(..))));
}

#[test]
fn i2_what_is_no_file_is_refused_at_once() {
    let scene = Scene::new(|top| {
        nix::unistd::mkfifo(&top.join("w/fifo"), Mode::S_IRWXU).unwrap();
        std::os::unix::net::UnixListener::bind(top.join("w/socket")).unwrap();
        if let Err(reason) = mknod(&top.join("w/device"), SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 5)) {
            eprintln!("NOT PROVED: a device, which cannot be made here ({reason})");
        }
        symlink("fifo", top.join("w/to-fifo")).unwrap();
    });
    let began = Instant::now();
    for name in ["fifo", "socket", "device", "to-fifo"].iter().filter(|name| scene.path("w").join(name).exists()) {
        for access in [Access::Read, Access::Write] {
            let (fact, handle) = scene.look(name, access);
            assert!(handle.is_none() && fact.problem.is_some_and(|p| p.contains("only regular files")), "{name}");
        }
        assert!(matches!(scene.grep(name), Some(Opened::Unreadable)), "{name} is not opened by Grep");
    }
    assert_eq!(scene.in_command("fifo", Access::Write).problem, None, "a command may use a pipe");
    assert!(began.elapsed() < Duration::from_secs(5), "something has blocked");
}

#[test]
fn i2_a_sparse_file_of_a_terabyte_is_a_file() {
    let scene = Scene::new(|top| fs::File::create(top.join("w/huge")).unwrap().set_len(1 << 40).unwrap());
    let began = Instant::now();
    let (file, _) = scene.look("huge", Access::Read).1.unwrap().open_file().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 40);
    assert!(matches!(scene.grep("huge"), Some(Opened::File(_, size)) if size == 1 << 40));
    assert!(!scene.look("huge", Access::Write).1.unwrap().write(b"small", None).unwrap());
    assert_eq!(fs::read(scene.path("w/huge")).unwrap(), b"small");
    assert!(began.elapsed() < Duration::from_secs(5), "it was read");
}

#[test]
fn windows_names_are_refused_where_they_mean_another_place_and_plain_elsewhere() {
    let scene = Scene::new(|_| {});
    for given in [r"C:\Users\x", "c:/x", "C:", r"\\server\share", r"\\?\C:\x", r"\\.\pipe\x"] {
        for access in [Access::Read, Access::Write] {
            let (fact, handle) = scene.look(given, access);
            assert!(handle.is_none() && fact.problem.is_some_and(|p| p.contains("Windows")), "{given}");
        }
    }
    for given in [r"src\a", "CON", "nul.txt", "a:stream", "file::$DATA", r"..\..\etc\passwd", "COM1"] {
        for fact in scene.facts(given) {
            assert_eq!((fact.scope, fact.problem.as_deref()), (Scope::Workspace, None), "{given} is only a name");
        }
    }
    for given in [".env::$DATA", ".env.", ".ENV ", ".env::$DATA/../.env"] {
        assert!(scene.facts(given).iter().all(|fact| action(fact) == Some(ProtectedAction::Ask)), "{given}");
    }
}

#[test]
fn names_of_protected_files_in_other_spellings_are_protected() {
    let scene = Scene::new(|_| {});
    for given in [
        ".GIT/Hooks/pre-commit",
        ".git/hooks/\u{200b}pre-commit",
        ".\u{ff47}it/hooks/x",
        ".g\u{200d}it/hooks/x",
        "git~1/hooks/x",
        ".git./hooks/x",
        "src/../.Git/config",
        "nested/.git/hooks/x",
    ] {
        let [read, write, command_reads, command_writes] = scene.facts(given);
        assert_eq!([action(&write), action(&command_writes)], [Some(ProtectedAction::Deny); 2], "{given:?}");
        assert_eq!([action(&read), action(&command_reads)], [None, None], "{given:?} may be read");
    }
}

#[test]
fn a_worktrees_file_leads_to_what_is_protected_elsewhere() {
    let scene = Scene::new(|top| {
        fs::remove_dir_all(top.join("w/.git")).unwrap();
        fs::create_dir_all(top.join("main/.git/worktrees/w/hooks")).unwrap();
        fs::create_dir_all(top.join("main/.git/hooks")).unwrap();
        fs::write(top.join("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
        fs::write(top.join("w/.git"), format!("gitdir: {}\n", top.join("main/.git/worktrees/w").display())).unwrap();
    });
    for given in ["../main/.git/hooks/pre-commit", "../main/.git/config", "../main/.git/worktrees/w/hooks/x"] {
        let [_, write, _, command_writes] = scene.facts(given);
        assert_eq!([action(&write), action(&command_writes)], [Some(ProtectedAction::Deny); 2], "{given}");
    }
    let [read, write, ..] = scene.facts(".git");
    assert_eq!([action(&read), action(&write)], [None, Some(ProtectedAction::Ask)], "it can be pointed elsewhere");
}
