//! What a daemon holds while it runs: its state directory, a TCP address, a Unix socket.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::config::Places;
use crate::state::{StateDir, StateError, private};

/// The longest path that a Unix socket can have (unix(7): 108 bytes with the final zero).
const LONGEST_SOCKET: usize = 107;

/// A state directory taken, and both listeners bound.
#[derive(Debug)]
pub struct Listeners {
    pub tcp: std::net::TcpListener,
    pub unix: UnixListener,
    pub socket: PathBuf,
    /// Held as long as the daemon runs; the kernel releases it however the process ends.
    pub(super) lock: File,
}

/// Why a daemon cannot start, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{address} is in use by another program: choose another address with --listen or `[serve] listen`")]
    AddressInUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Address { address: SocketAddr, source: io::Error },
    #[error(
        "a gateway serves the state directory {} already ({who}): use that one, stop it, or choose another state \
         directory with PORTCULLIS_STATE", state.display()
    )]
    Running { state: PathBuf, who: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is no socket, and in the place of the gateway's: move it away", .0.display())]
    NoSocket(PathBuf),
    #[error(
        "the socket's path {} is longer than the {LONGEST_SOCKET} bytes that the system allows: choose a shorter state \
         directory with PORTCULLIS_STATE", .0.display()
    )]
    SocketPath(PathBuf),
    #[error(
        "the state directory cannot be used: {0}: make it writable for this user, or choose another with PORTCULLIS_STATE"
    )]
    State(#[from] StateError),
}

impl Listeners {
    /// Takes the state directory and binds both listeners.
    ///
    /// # Errors
    ///
    /// What is in the way, and the remedy. A socket that a dead daemon left behind is not: it is replaced.
    pub fn bind(places: &Places, address: SocketAddr) -> Result<Self, ListenError> {
        let state = StateDir::open(&places.state)?;
        let mut lock = lock(state.path())?;
        let tcp = std::net::TcpListener::bind(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::AddressInUse { address },
            _ => ListenError::Address { address, source },
        })?;
        let bound = tcp.local_addr().map_err(|source| ListenError::Address { address, source })?;
        tcp.set_nonblocking(true).map_err(|source| ListenError::Address { address, source })?;
        let socket = places.socket();
        let unix = bind_socket(&socket)?;
        write_who(&mut lock, bound).map_err(in_file(&lock_file(state.path())))?;
        Ok(Listeners { tcp, unix, socket, lock })
    }

    /// The TCP address that was bound.
    ///
    /// # Errors
    ///
    /// When the kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// What the running daemon of a state directory says of itself, such as `pid 17, http://127.0.0.1:8460`.
pub fn running(state: &Path) -> Option<String> {
    let mut file = private().read(true).open(lock_file(state)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(who(&mut file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn lock_file(state: &Path) -> PathBuf {
    state.join("serve.lock")
}

fn lock(state: &Path) -> Result<File, ListenError> {
    let path = lock_file(state);
    let mut file = private().read(true).write(true).create(true).truncate(false).open(&path).map_err(in_file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ListenError::Running { state: state.to_owned(), who: who(&mut file) }),
        Err(TryLockError::Error(source)) => Err(ListenError::Io { path, source }),
    }
}

fn who(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(200).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        Ok(_) | Err(_) => "it is just starting".to_owned(),
    }
}

fn write_who(file: &mut File, address: SocketAddr) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "pid {}, http://{address}", std::process::id())
}

/// Binds the Unix socket: mode 0600, in a directory of mode 0700. Nobody else serves this state directory, so a socket
/// that lies there is a dead one's.
fn bind_socket(path: &Path) -> Result<UnixListener, ListenError> {
    if path.as_os_str().len() > LONGEST_SOCKET {
        return Err(ListenError::SocketPath(path.to_owned()));
    }
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(in_file(dir))?;
        crate::state::check_private(dir)?;
    }
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NoSocket(path.to_owned())),
        Ok(_) => fs::remove_file(path).map_err(in_file(path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(in_file(path)(error)),
    }
    let socket = UnixListener::bind(path).map_err(in_file(path))?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(in_file(path))?;
    socket.set_nonblocking(true).map_err(in_file(path))?;
    Ok(socket)
}

fn in_file(path: &Path) -> impl FnOnce(io::Error) -> ListenError + use<> {
    let path = path.to_owned();
    move |source| ListenError::Io { path, source }
}
