//! Looking a path up: where it lands, and a handle of what is there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::{FileStat, Mode};

use super::ground::{Census, Ground, GroundError, MOST_ENTRIES, OtherNames};
use super::handle::{Found, Handle, Place};
use super::kernel::{Identity, Kind, open_at, real_path, stat};
use super::name::{Name, Problem};
use super::predict::{Loop, predict};
use super::{Access, COMMAND, PathFact, Protection, Wards};
use crate::facts::surroundings::normalise;
use crate::facts::{Scope, Surroundings};

/// How often a path that changes while it is looked at is looked at again.
const ATTEMPTS: usize = 16;

/// Looks paths up, for one workspace.
#[derive(Clone, Debug)]
pub struct Resolver {
    ground: Arc<Ground>,
}

/// What was found out for one path of a call and serves the others too.
#[derive(Debug, Default)]
pub(super) struct Memo {
    censuses: RefCell<HashMap<Access, Rc<Census>>>,
}

impl Memo {
    fn census(&self, ground: &Ground, access: Access) -> Rc<Census> {
        let mut censuses = self.censuses.borrow_mut();
        Rc::clone(censuses.entry(access).or_insert_with(|| Rc::new(ground.census(access, MOST_ENTRIES))))
    }
}

/// Where a path led.
struct Spot {
    /// Absolute, without links; predicted where nothing is there.
    landing: PathBuf,
    found: Option<Found>,
    /// Why nothing was found.
    obstacle: Errno,
    /// Nothing can be made there by this name, for the obstacle's reason.
    blocked: bool,
    problem: Option<Problem>,
}

/// What was found has changed in the same moment.
struct Changed;

/// What became of a path that was looked up.
pub(super) struct Looked {
    pub fact: PathFact,
    pub handle: Option<Handle>,
    /// Where it lands, also outside the workspace, of which the fact tells nothing. Absent where that says nothing of the
    /// next time.
    pub landing: Option<PathBuf>,
}

impl Resolver {
    /// Holds the workspace and the extra roots open. From here on it is these directories that are guarded, whatever
    /// their names lead to later.
    pub fn open(surroundings: &Surroundings, protection: Protection) -> Result<Self, GroundError> {
        Ok(Resolver { ground: Arc::new(Ground::open(surroundings, protection)?) })
    }

    /// The home directory, which `~` stands for.
    pub(super) fn home(&self) -> &Path {
        &self.ground.places.home
    }

    /// The workspace's real path.
    pub fn workspace(&self) -> &Path {
        &self.ground.workspace().path
    }

    /// Looks for what is to be kept from programs in the workspace and the extra roots.
    pub fn wards(&self) -> Wards {
        self.ground.wards()
    }

    /// Looks up a tool's argument. The handle is of what was judged; there is none where the path cannot be used.
    pub fn look(&self, argument: &str, given: &str, access: Access, cwd: &Path) -> (PathFact, Option<Handle>) {
        let looked = self.look_with(&Memo::default(), argument, given, access, cwd);
        (looked.fact, looked.handle)
    }

    /// The same for several paths of one call, which share what takes long to find out.
    pub(super) fn look_with(&self, memo: &Memo, argument: &str, given: &str, access: Access, cwd: &Path) -> Looked {
        self.looked(memo, argument, given, access, cwd, true)
    }

    /// Looks up a path that is opened again by name later, by a command or by another program: no handle is kept, and what
    /// can be done with it is not for the gateway to say.
    pub(super) fn look_by_name(&self, memo: &Memo, argument: &str, given: &str, access: Access, cwd: &Path) -> Looked {
        self.looked(memo, argument, given, access, cwd, false)
    }

    fn looked(&self, memo: &Memo, argument: &str, given: &str, access: Access, cwd: &Path, keep: bool) -> Looked {
        let mut fact = PathFact {
            argument: argument.to_owned(),
            given: given.to_owned(),
            access,
            scope: Scope::Unknown,
            lands: None,
            protected: None,
            problem: None,
            unchecked: None,
        };
        let mut landing = None;
        let handle = self.fill(memo, &mut fact, &mut landing, cwd, keep).unwrap_or_else(|problem| {
            fact.problem = Some(problem.to_string());
            None
        });
        Looked { fact, handle, landing }
    }

    /// Looks up a path that a command uses.
    pub fn look_in_command(&self, given: &str, access: Access) -> PathFact {
        self.look_by_name(&Memo::default(), COMMAND, given, access, self.workspace()).fact
    }

    fn fill(
        &self,
        memo: &Memo,
        fact: &mut PathFact,
        landing: &mut Option<PathBuf>,
        cwd: &Path,
        keep: bool,
    ) -> Result<Option<Handle>, Problem> {
        let name = Name::parse(&fact.given, cwd)?;
        for _ in 0..ATTEMPTS {
            let Ok(spot) = self.locate(&name, fact.access) else { continue };
            self.judge(memo, fact, &name, &spot);
            *landing = stays(&name, fact).then(|| spot.landing.clone());
            // Of what is outside nothing more is told: it looks the same whether there is something or not.
            let inside =
                matches!(self.ground.scope(&spot.landing, None), Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot);
            if inside && let Some(problem) = spot.problem {
                return Err(problem);
            }
            if !keep {
                return Ok(None);
            }
            if inside {
                usable(&name, &spot, fact.access)?;
            }
            if let Ok(handle) = self.keep(spot, fact) {
                return Ok(Some(handle));
            }
        }
        Err(Problem::Unstable)
    }

    /// Finds what a name leads to. Inside the workspace the kernel vouches that the way never left it.
    fn locate(&self, name: &Name, access: Access) -> Result<Spot, Changed> {
        // What is deleted is the link, not what it leads to.
        let follow = access != Access::Delete || name.names_directory;
        match self.open_name(name, follow) {
            Ok(handle) => {
                let stat = stat(&handle).map_err(|_| Changed)?;
                let landing = real_path(&handle).map_err(|_| Changed)?;
                if stat.st_nlink == 0 || !landing.is_absolute() {
                    return Err(Changed);
                }
                let found = Some(Found { handle, stat });
                Ok(Spot { landing, found, obstacle: Errno::UnknownErrno, blocked: false, problem: None })
            }
            Err(obstacle) => {
                let (landing, blocked, problem) = match predict(name.path(), follow) {
                    Ok(found) if obstacle == Errno::ELOOP => (found.landing, true, Some(Problem::MagicLink)),
                    Ok(found) => (found.landing, found.blocked || name.names_directory, None),
                    Err(Loop(at)) => (at, true, Some(Problem::Loop)),
                };
                Ok(Spot { landing, found: None, obstacle, blocked, problem })
            }
        }
    }

    fn open_name(&self, name: &Name, follow: bool) -> Result<OwnedFd, Errno> {
        let flags = if follow { OFlag::O_PATH } else { OFlag::O_PATH | OFlag::O_NOFOLLOW };
        let workspace = self.ground.workspace();
        let inner = name.after(&self.ground.workspace_name).or_else(|| name.after(&workspace.path));
        if let Some(inner) = inner {
            let beneath = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
            match open_at(&workspace.handle, inner, flags, Mode::empty(), beneath) {
                // The kernel may have to start over, and then counts the links of both walks against its limit.
                Err(Errno::EXDEV | Errno::ELOOP) => {}
                other => return other,
            }
        }
        let slash = &self.ground.slash().handle;
        let open = || open_at(slash, name.path(), flags, Mode::empty(), ResolveFlag::RESOLVE_NO_MAGICLINKS);
        match open() {
            Err(Errno::ELOOP) => open(),
            other => other,
        }
    }

    fn judge(&self, memo: &Memo, fact: &mut PathFact, name: &Name, spot: &Spot) {
        let ground = &self.ground;
        let by_name = normalise(name.path());
        fact.scope = match ground.places.scope(&by_name) {
            Scope::Gateway => Scope::Gateway,
            // A device's name says what is meant; where `/dev/stdin` leads right here does not.
            Scope::Device if fact.argument == COMMAND => Scope::Device,
            _ => ground.scope(&spot.landing, spot.found.as_ref().map(|found| &found.stat)),
        };
        fact.lands = match fact.scope {
            Scope::Workspace => spot.landing.strip_prefix(&ground.workspace().path).ok().map(|inner| {
                let inner = inner.to_string_lossy();
                if inner.is_empty() { ".".to_owned() } else { inner.into_owned() }
            }),
            Scope::ReadRoot | Scope::WriteRoot => Some(spot.landing.to_string_lossy().into_owned()),
            _ => None,
        };
        let named = ground.protected(&by_name, fact.access);
        let landed = if spot.landing == by_name { None } else { ground.protected(&spot.landing, fact.access) };
        fact.protected = named.into_iter().chain(landed).max_by_key(|found| found.action);
        fact.unchecked = None;
        self.judge_names_by_mount(fact, spot);
        if let Some(found) = &spot.found {
            self.judge_other_names(memo, fact, &found.stat);
        }
    }

    /// What a mount shows is judged by where it really is as well; what is to be made, by the directory it is made in.
    fn judge_names_by_mount(&self, fact: &mut PathFact, spot: &Spot) {
        let ground = &self.ground;
        let names = match &spot.found {
            Some(found) => ground.names_by_mount(&found.handle, &found.stat, &spot.landing),
            None if fact.access == Access::Write => self.names_of_place(&spot.landing),
            None => Vec::new(),
        };
        for name in names {
            if ground.places.scope(&name) == Scope::Gateway {
                fact.scope = Scope::Gateway;
                fact.lands = None;
            }
            let own = fact.protected.take();
            fact.protected =
                own.into_iter().chain(ground.protected(&name, fact.access)).max_by_key(|found| found.action);
        }
    }

    fn names_of_place(&self, landing: &Path) -> Vec<PathBuf> {
        let (root, inner) = self.ground.root_of(landing);
        let Ok(place) = Place::open(&root.handle, inner) else { return Vec::new() };
        let (Ok(stat), Ok(path)) = (stat(place.directory()), real_path(place.directory())) else { return Vec::new() };
        let names = self.ground.names_by_mount(place.directory(), &stat, &path);
        let rest = landing.strip_prefix(&path).unwrap_or(Path::new(""));
        names.into_iter().map(|name| name.join(rest)).collect()
    }

    /// A file with several names is as protected as the best protected of them. Programs are left out: installers link
    /// them freely, and running one shows nothing of it.
    fn judge_other_names(&self, memo: &Memo, fact: &mut PathFact, stat: &FileStat) {
        let matters = matches!(
            fact.scope,
            Scope::Workspace | Scope::ReadRoot | Scope::WriteRoot | Scope::Temp | Scope::Home | Scope::Outside
        );
        if Kind::of(stat) != Kind::File || stat.st_nlink < 2 || !matters || fact.access == Access::Execute {
            return;
        }
        match memo.census(&self.ground, fact.access).other_names(Identity::of(stat)) {
            OtherNames::Harmless => {}
            OtherNames::Gateway => {
                fact.scope = Scope::Gateway;
                fact.lands = None;
            }
            OtherNames::Protected(other) => {
                let own = fact.protected.take();
                fact.protected = own.into_iter().chain([other]).max_by_key(|found| found.action);
            }
            OtherNames::Unfinished => {
                fact.unchecked = Some(
                    "the file has several names, and there are too many files to see whether one is protected"
                        .to_owned(),
                );
            }
        }
    }

    fn keep(&self, spot: Spot, fact: &PathFact) -> Result<Handle, Changed> {
        let place = match fact.access {
            Access::Write if spot.blocked => Some(Err(spot.obstacle)),
            Access::Write => Some(self.place(&spot)?),
            Access::Read | Access::Delete | Access::Execute => None,
        };
        let shown = fact.lands.clone().unwrap_or_else(|| fact.given.clone());
        Ok(Handle::new(Arc::clone(&self.ground), shown, spot.landing, spot.found, spot.obstacle, place))
    }

    /// Opens the directory that a file is written in, following no link, and sees to it that the file there is the one
    /// that was judged.
    fn place(&self, spot: &Spot) -> Result<Result<Place, Errno>, Changed> {
        let (root, inner) = self.ground.root_of(&spot.landing);
        let place = match Place::open(&root.handle, inner) {
            Err(Errno::ELOOP | Errno::EXDEV) => return Err(Changed),
            Err(obstacle) => return Ok(Err(obstacle)),
            Ok(place) => place,
        };
        let there = match place.occupant() {
            Err(Errno::EEXIST) => return Err(Changed),
            Err(obstacle) => return Ok(Err(obstacle)),
            Ok(there) => there,
        };
        let judged = spot.found.as_ref().map(|found| Identity::of(&found.stat));
        // By a name that only a directory could have, what is there was not found, and stays as it is.
        if judged.is_none() && there.is_some() && spot.obstacle != Errno::ENOENT {
            return Ok(Err(spot.obstacle));
        }
        if there.as_ref().map(Identity::of) == judged { Ok(Ok(place)) } else { Err(Changed) }
    }
}

/// Whether a path leads to the same place whoever follows it. The places of a process and its streams do not.
fn stays(name: &Name, fact: &PathFact) -> bool {
    let own = |top| fact.argument == COMMAND && name.path().starts_with(top);
    !own("/dev") && !own("/proc")
}

/// Whether a file tool can work on what was found at all.
fn usable(name: &Name, spot: &Spot, access: Access) -> Result<(), Problem> {
    let kind = spot.found.as_ref().map(|found| Kind::of(&found.stat));
    match kind {
        Some(kind @ (Kind::Fifo | Kind::Socket | Kind::CharacterDevice | Kind::BlockDevice))
            if access != Access::Delete =>
        {
            Err(Problem::Special(kind.noun()))
        }
        Some(Kind::Directory) | None if access == Access::Write && name.names_directory => Err(Problem::DirectoryName),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use nix::sys::stat::Mode as Permissions;
    use tempfile::TempDir;

    use super::*;
    use crate::facts::path::{HandleError, ProtectedAction, standard_rules};

    /// A workspace `w` and an outside `o`, side by side.
    struct Scene {
        top: TempDir,
        resolver: Resolver,
    }

    impl Scene {
        fn new() -> Self {
            Scene::with(|_| {})
        }

        fn with(adjust: impl FnOnce(&mut Surroundings)) -> Self {
            let top = tempfile::tempdir().unwrap();
            for directory in ["w/src", "o", "home", "gate", "read", "write"] {
                fs::create_dir_all(top.path().join(directory)).unwrap();
            }
            let mut surroundings = Surroundings::new(top.path().join("w"), top.path().join("home"));
            surroundings.gateway.push(top.path().join("gate"));
            surroundings.read_roots.push(top.path().join("read"));
            surroundings.write_roots.push(top.path().join("write"));
            adjust(&mut surroundings);
            let protection = Protection::new(standard_rules()).unwrap();
            Scene { resolver: Resolver::open(&surroundings, protection).unwrap(), top }
        }

        fn path(&self, inner: &str) -> PathBuf {
            self.top.path().join(inner)
        }

        fn put(&self, inner: &str, content: &str) {
            fs::create_dir_all(self.path(inner).parent().unwrap()).unwrap();
            fs::write(self.path(inner), content).unwrap();
        }

        fn look(&self, given: &str, access: Access) -> (PathFact, Option<Handle>) {
            self.resolver.look("path", given, access, &self.path("w"))
        }

        fn scope(&self, given: &str) -> Scope {
            self.look(given, Access::Read).0.scope
        }

        fn read(&self, given: &str) -> Result<String, HandleError> {
            let (mut file, _) = self.look(given, Access::Read).1.unwrap().open_file()?;
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            Ok(text)
        }
    }

    #[test]
    fn paths_are_judged_by_where_they_land() {
        let scene = Scene::new();
        scene.put("w/src/a.rs", "a");
        scene.put("o/secret", "s");
        symlink("src/a.rs", scene.path("w/inner")).unwrap();
        symlink(scene.path("w/src"), scene.path("w/absolute")).unwrap();
        symlink("../o", scene.path("w/out")).unwrap();
        symlink("../read", scene.path("w/data")).unwrap();
        symlink(scene.path("w"), scene.path("o/back")).unwrap();
        let back = scene.path("o/back/src/a.rs");
        for (given, scope, lands) in [
            ("src/a.rs", Scope::Workspace, Some("src/a.rs")),
            ("./src//../src/./a.rs", Scope::Workspace, Some("src/a.rs")),
            (".", Scope::Workspace, Some(".")),
            ("inner", Scope::Workspace, Some("src/a.rs")),
            ("absolute/a.rs", Scope::Workspace, Some("src/a.rs")),
            ("../w/src", Scope::Workspace, Some("src")),
            (back.to_str().unwrap(), Scope::Workspace, Some("src/a.rs")),
            ("src/missing/x", Scope::Workspace, Some("src/missing/x")),
            ("out/secret", Scope::Temp, None),
            ("out/missing", Scope::Temp, None),
            ("../o/secret", Scope::Temp, None),
            ("out/../w/src/a.rs", Scope::Workspace, Some("src/a.rs")),
            ("/etc/passwd", Scope::System, None),
            ("/etc/no-such-file", Scope::System, None),
            ("../gate/state.db", Scope::Gateway, None),
        ] {
            let fact = scene.look(given, Access::Read).0;
            assert_eq!((fact.scope, fact.lands.as_deref()), (scope, lands), "{given}");
            assert_eq!(fact.problem, None, "{given}");
        }
        let data = scene.look("data/x", Access::Read).0;
        assert_eq!(data.scope, Scope::ReadRoot, "a link into a configured root is that root's");
        assert_eq!(data.lands.unwrap(), scene.path("read/x").to_str().unwrap());
    }

    #[test]
    fn every_outside_path_gets_the_same_answer() {
        let scene = Scene::new();
        scene.put("o/file", "x");
        fs::create_dir(scene.path("o/dir")).unwrap();
        nix::unistd::mkfifo(&scene.path("o/fifo"), Permissions::S_IRUSR).unwrap();
        symlink("loop", scene.path("o/loop")).unwrap();
        fs::create_dir(scene.path("o/closed")).unwrap();
        fs::set_permissions(scene.path("o/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        for access in [Access::Read, Access::Write, Access::Delete] {
            let reference = scene.look("../o/missing", access).0;
            for given in
                ["../o/file", "../o/dir", "../o/fifo", "../o/loop", "../o/loop/x", "../o/closed/x", "../o/file/x"]
            {
                let fact = scene.look(given, access).0;
                assert_eq!(PathFact { given: reference.given.clone(), ..fact }, reference, "{given} tells what exists");
            }
        }
    }

    #[test]
    fn i2_what_cannot_be_used_is_a_problem_and_nothing_blocks() {
        let scene = Scene::new();
        nix::unistd::mkfifo(&scene.path("w/fifo"), Permissions::S_IRUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(scene.path("w/socket")).unwrap();
        symlink("loop", scene.path("w/loop")).unwrap();
        symlink("/proc/self/cwd", scene.path("w/magic")).unwrap();
        for (given, part) in [
            ("fifo", "named pipe"),
            ("socket", "socket"),
            ("loop", "loop"),
            ("loop/x", "loop"),
            ("a\0b", "NUL"),
            ("", "empty"),
        ] {
            for access in [Access::Read, Access::Write] {
                let (fact, handle) = scene.look(given, access);
                assert!(fact.problem.as_ref().is_some_and(|p| p.contains(part)), "{given:?}: {:?}", fact.problem);
                assert!(handle.is_none(), "{given:?} must not be opened");
            }
        }
        let directory = scene.look("new/", Access::Write).0.problem;
        assert!(directory.unwrap().contains("ends like a directory"));
        assert_ne!(scene.scope("magic"), Scope::Workspace, "a magic link leads where the process is");
    }

    #[test]
    fn a_device_inside_the_workspace_is_refused() {
        use nix::sys::stat::{SFlag, makedev, mknod};
        let scene = Scene::new();
        let device = scene.path("w/null");
        if let Err(reason) = mknod(&device, SFlag::S_IFCHR, Permissions::S_IRWXU, makedev(1, 3)) {
            eprintln!("SKIPPED: 1 check of a device node, which cannot be made here ({reason})");
            return;
        }
        let (fact, handle) = scene.look("null", Access::Write);
        assert!(fact.problem.is_some_and(|problem| problem.contains("character device")) && handle.is_none());
        let in_command = scene.resolver.look_in_command(device.to_str().unwrap(), Access::Write);
        assert_eq!(in_command.scope, Scope::Device);
    }

    #[test]
    fn a_workspace_known_by_a_link_is_the_same_workspace() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("real")).unwrap();
        symlink("real", top.path().join("link")).unwrap();
        let surroundings = Surroundings::new(top.path().join("link"), "/nonexistent");
        let resolver = Resolver::open(&surroundings, Protection::new(standard_rules()).unwrap()).unwrap();
        for directory in ["link", "real"] {
            let given = top.path().join(directory).join("x/.env").to_string_lossy().into_owned();
            let fact = resolver.look("path", &given, Access::Write, Path::new("/")).0;
            assert_eq!((fact.scope, fact.lands.as_deref()), (Scope::Workspace, Some("x/.env")), "{given}");
            assert_eq!(fact.protected.map(|p| p.glob).as_deref(), Some(".env"), "{given}");
        }
    }

    #[test]
    fn a_deleted_link_is_the_link_itself() {
        let scene = Scene::new();
        symlink("/etc", scene.path("w/link")).unwrap();
        let fact = scene.look("link", Access::Delete).0;
        assert_eq!((fact.scope, fact.lands.as_deref()), (Scope::Workspace, Some("link")));
        assert_eq!(scene.look("link/", Access::Delete).0.scope, Scope::System, "with a slash it is the directory");
    }

    #[test]
    fn a_dangling_link_is_written_where_it_points() {
        let scene = Scene::new();
        symlink("src/new.rs", scene.path("w/inside")).unwrap();
        symlink("../o/new", scene.path("w/outside")).unwrap();
        let (fact, handle) = scene.look("inside", Access::Write);
        assert_eq!(fact.lands.as_deref(), Some("src/new.rs"));
        assert!(handle.unwrap().write(b"new", None).unwrap(), "the file is new");
        assert_eq!(fs::read_to_string(scene.path("w/src/new.rs")).unwrap(), "new");
        assert!(fs::symlink_metadata(scene.path("w/inside")).unwrap().is_symlink(), "the link stays");
        assert_eq!(scene.look("outside", Access::Write).0.scope, Scope::Temp);
    }

    #[test]
    fn writing_replaces_the_name_and_keeps_mode_and_other_names() {
        let scene = Scene::new();
        scene.put("w/run.sh", "old");
        fs::set_permissions(scene.path("w/run.sh"), fs::Permissions::from_mode(0o754)).unwrap();
        fs::hard_link(scene.path("w/run.sh"), scene.path("w/other")).unwrap();
        let (fact, handle) = scene.look("run.sh", Access::Write);
        assert_eq!(fact.protected, None, "an ordinary hard link is no matter");
        assert!(!handle.unwrap().write(b"new", None).unwrap());
        assert_eq!(fs::read_to_string(scene.path("w/run.sh")).unwrap(), "new");
        assert_eq!(fs::read_to_string(scene.path("w/other")).unwrap(), "old");
        assert_eq!(fs::metadata(scene.path("w/run.sh")).unwrap().mode() & 0o7777, 0o754);
        assert_eq!(fs::read_dir(scene.path("w")).unwrap().count(), 3, "no draft is left behind");
    }

    #[test]
    fn missing_directories_are_made_below_the_root_alone() {
        let scene = Scene::new();
        let (_, handle) = scene.look("a/b/c.txt", Access::Write);
        assert!(handle.unwrap().write(b"x", None).unwrap());
        assert_eq!(fs::read_to_string(scene.path("w/a/b/c.txt")).unwrap(), "x");
        let (_, late) = scene.look("n/x", Access::Write);
        symlink("../o", scene.path("w/n")).unwrap();
        assert!(late.unwrap().write(b"x", None).is_err(), "a link has come to stand where nothing was");
        assert!(!scene.path("o/x").exists(), "nothing is written outside");
    }

    #[test]
    fn i4_a_file_that_changed_after_it_was_judged_is_not_replaced() {
        let scene = Scene::new();
        scene.put("w/a", "one");
        let (_, handle) = scene.look("a", Access::Write);
        let handle = handle.unwrap();
        fs::remove_file(scene.path("w/a")).unwrap();
        symlink("../o/secret", scene.path("w/a")).unwrap();
        assert!(matches!(handle.write(b"x", None), Err(HandleError::Changed(_))));
        scene.put("w/b", "one");
        let handle = scene.look("b", Access::Write).1.unwrap();
        let (_, stamp) = handle.open_file().unwrap();
        fs::write(scene.path("w/b"), "two!").unwrap();
        assert!(matches!(handle.write(b"x", Some(stamp)), Err(HandleError::Changed(_))), "it was changed in place");
        let handle = scene.look("c", Access::Write).1.unwrap();
        scene.put("w/c", "someone else's");
        assert!(matches!(handle.write(b"x", None), Err(HandleError::Changed(_))), "it came into being");
        assert_eq!(fs::read_to_string(scene.path("w/c")).unwrap(), "someone else's");
        assert_eq!(fs::read_dir(scene.path("w")).unwrap().count(), 4, "no draft is left behind");
    }

    #[test]
    fn i4_reading_works_on_the_file_that_was_judged() {
        let scene = Scene::new();
        scene.put("w/a", "judged");
        scene.put("o/secret", "secret");
        let handle = scene.look("a", Access::Read).1.unwrap();
        fs::remove_file(scene.path("w/a")).unwrap();
        symlink("../o/secret", scene.path("w/a")).unwrap();
        let mut text = String::new();
        handle.open_file().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "judged");
        assert!(matches!(scene.read("src"), Err(HandleError::WrongKind { .. })));
        assert!(matches!(scene.read("none"), Err(HandleError::Missing(_))));
    }

    #[test]
    fn another_name_of_a_protected_file_is_as_protected() {
        let scene = Scene::new();
        scene.put("w/.git/config", "[core]");
        scene.put("w/deep/er/.env", "TOKEN=x");
        scene.put("home/.ssh/id_rsa", "key");
        scene.put("gate/state.db", "state");
        fs::hard_link(scene.path("w/.git/config"), scene.path("w/a")).unwrap();
        fs::hard_link(scene.path("w/deep/er/.env"), scene.path("w/b")).unwrap();
        fs::hard_link(scene.path("home/.ssh/id_rsa"), scene.path("w/c")).unwrap();
        fs::hard_link(scene.path("gate/state.db"), scene.path("w/d")).unwrap();
        let action = |given, access| scene.look(given, access).0.protected.map(|p| p.action);
        assert_eq!(action("a", Access::Write), Some(ProtectedAction::Deny));
        assert_eq!(action("a", Access::Read), None);
        assert_eq!(action("b", Access::Read), Some(ProtectedAction::Ask));
        assert_eq!(action("c", Access::Read), Some(ProtectedAction::Deny));
        assert_eq!(scene.scope("d"), Scope::Gateway);
        let in_command = scene.resolver.look_in_command(scene.path("w/a").to_str().unwrap(), Access::Write);
        assert_eq!(in_command.protected.map(|p| p.action), Some(ProtectedAction::Deny));
    }

    #[test]
    fn protected_paths_match_through_links_case_and_worktrees() {
        let repository = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(repository.path()).unwrap();
        fs::create_dir_all(real.join("meta/hooks")).unwrap();
        let scene = Scene::with(|surroundings| {
            fs::write(surroundings.workspace.join(".git"), format!("gitdir: {}\n", real.join("meta").display()))
                .unwrap();
            surroundings.write_roots.push(real.clone());
        });
        scene.put("w/.env", "x");
        symlink(".env", scene.path("w/plain")).unwrap();
        symlink("src", scene.path("w/.ssh")).unwrap();
        let protected = |given: &str, access| scene.look(given, access).0.protected.map(|p| p.glob);
        assert_eq!(protected("plain", Access::Read).as_deref(), Some(".env"), "by where it lands");
        assert_eq!(protected(".ssh/x", Access::Read).as_deref(), Some(".ssh/**"), "by its name");
        assert_eq!(protected(".GIT/HOOKS/x", Access::Write).as_deref(), Some(".git/hooks/**"));
        let hook = real.join("meta/hooks/pre-commit");
        assert_eq!(protected(hook.to_str().unwrap(), Access::Write).as_deref(), Some(".git/hooks/**"));
    }

    #[test]
    fn a_workspace_below_a_protected_name_is_not_protected_itself() {
        let top = tempfile::tempdir().unwrap();
        let workspace = top.path().join(".claude/worktrees/x");
        fs::create_dir_all(&workspace).unwrap();
        let surroundings = Surroundings::new(&workspace, "/nonexistent");
        let resolver = Resolver::open(&surroundings, Protection::new(standard_rules()).unwrap()).unwrap();
        assert_eq!(resolver.look("path", "a", Access::Write, &workspace).0.protected, None);
    }

    #[test]
    fn a_workspace_that_cannot_be_guarded_is_an_error() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("file"), "").unwrap();
        let open = |workspace: PathBuf, gateway: Option<PathBuf>| {
            let mut surroundings = Surroundings::new(workspace, "/nonexistent");
            surroundings.gateway.extend(gateway);
            let resolver = Resolver::open(&surroundings, Protection::new(Vec::new()).unwrap());
            resolver.map(|_| ()).unwrap_err().to_string()
        };
        assert!(open(top.path().join("none"), None).contains("cannot be opened"));
        assert!(open(top.path().join("file"), None).contains("not a directory"));
        assert!(open("/".into(), None).contains("root directory"));
        assert!(open(top.path().into(), Some(top.path().join("state"))).contains("keep them apart"));
    }

    #[test]
    fn device_names_in_commands_are_judged_by_name() {
        let scene = Scene::new();
        symlink("/dev/null", scene.path("w/null")).unwrap();
        for given in ["/dev/null", "/dev/stdin", "/dev/sda", scene.path("w/null").to_str().unwrap()] {
            assert_eq!(scene.resolver.look_in_command(given, Access::Write).scope, Scope::Device, "{given}");
        }
    }
}
