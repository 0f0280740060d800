//! A terminal of the program's own, beside the caller's: what is typed goes in, what is shown comes out without what would
//! command the caller's terminal, and nothing inside ever holds that one.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

/// Puts a screen in order that a program left as it was: colours, cursor, mouse, pasting.
pub const RESET: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l";
/// End of input, as it is typed.
const END_OF_INPUT: u8 = 4;
/// How often to look whether the caller's terminal has another size.
const SIZE_CHECK: u16 = 500;

/// A fresh terminal. The caller's own, where there is one, passes on every key until this is dropped.
#[derive(Debug)]
pub struct Pty {
    /// The gateway's end.
    pub own: File,
    /// The program's end; to be dropped once the program has it.
    pub program: Option<OwnedFd>,
    before: Option<Termios>,
    stop: Option<io::PipeWriter>,
    relay: Option<JoinHandle<()>>,
}

impl Pty {
    pub fn open() -> io::Result<Self> {
        let OpenptyResult { master, slave } = openpty(size(io::stdout().as_fd()).as_ref(), None)?;
        for end in [&master, &slave] {
            nix::fcntl::fcntl(end, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
        }
        let own = File::from(master);
        let (stopped, stop) = io::pipe()?;
        let mut typed = own.try_clone()?;
        let relay =
            std::thread::Builder::new().name("keys".to_owned()).spawn(move || pass_keys(&mut typed, &stopped))?;
        let before = if io::stdin().is_terminal() { Some(every_key()?) } else { None };
        Ok(Pty { own, program: Some(slave), before, stop: Some(stop), relay: Some(relay) })
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, before);
        }
    }
}

/// Passes keys on as they are typed, without showing them; answers how it was before.
fn every_key() -> io::Result<Termios> {
    let before = tcgetattr(io::stdin())?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)?;
    Ok(before)
}

/// What is typed goes to the program, and so does the size of the screen, until the other end of `stopped` is closed.
fn pass_keys(to: &mut File, stopped: &io::PipeReader) {
    let mut open = true;
    let mut shown = size(to.as_fd());
    loop {
        let (stdin, ended) = (io::stdin(), stopped.as_fd());
        let mut events = vec![PollFd::new(ended, PollFlags::POLLIN)];
        if open {
            events.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        }
        let polled = poll(&mut events, PollTimeout::from(SIZE_CHECK));
        let ready = |at: usize| polled.is_ok() && events.get(at).and_then(PollFd::any).unwrap_or(false);
        if ready(0) {
            return;
        }
        let now = size(io::stdout().as_fd());
        if let Some(window) = now.filter(|_| now != shown) {
            // SAFETY: the structure outlives the call.
            unsafe { libc::ioctl(to.as_raw_fd(), libc::TIOCSWINSZ, &raw const window) };
            shown = now;
        }
        if open && ready(1) {
            let mut keys = [0u8; 4096];
            let length = stdin.lock().read(&mut keys).unwrap_or(0);
            let typed = keys.get(..length).unwrap_or_default();
            open = length > 0 && to.write_all(typed).is_ok();
            if length == 0 {
                let _ = to.write_all(&[END_OF_INPUT]);
            }
        }
    }
}

fn size(terminal: BorrowedFd<'_>) -> Option<Winsize> {
    let mut window = Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the structure outlives the call.
    let known = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut window) } == 0;
    (known && window.ws_row > 0).then_some(window)
}
