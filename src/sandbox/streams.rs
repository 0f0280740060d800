//! Where a program's standard streams go, and what is kept of them.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::stat::fstat;

use super::capture::Capture;
use super::pty::{Pty, RESET};
use super::terminal::Tame;

/// Where a program's standard streams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// No input; output is kept, beginning and end, up to the profile's limit.
    Capture,
    /// This process's own, but for a terminal: no program gets hold of it. Output is copied to it, without what would
    /// command it, and there is no input. Errors are read along.
    PassThrough,
    /// A fresh terminal, which this process's own terminal shows, without what would command that one.
    Terminal,
}

/// Both ends of a program's streams.
pub struct Ends {
    /// The program's, to be dropped when it has them; /dev/null where there is no input.
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// What comes out, of standard output and of standard error.
    pub out: [Stream; 2],
    /// Held as long as the program runs.
    pub terminal: Option<Pty>,
}

impl Ends {
    /// Makes what there must be of pipes and terminals; at most `limit` bytes are kept of each stream.
    pub fn make(streams: Streams, limit: usize) -> io::Result<Self> {
        match streams {
            Streams::Capture => {
                let ((out, stdout), (err, stderr)) = (io::pipe()?, io::pipe()?);
                let out = [Stream::new(Some(OwnedFd::from(out)), limit), Stream::new(Some(OwnedFd::from(err)), limit)];
                Ok(Ends { stdin: None, stdout: stdout.into(), stderr: stderr.into(), out, terminal: None })
            }
            Streams::PassThrough => Self::pass_through(limit),
            Streams::Terminal => Self::terminal(limit),
        }
    }

    fn pass_through(limit: usize) -> io::Result<Self> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let own = |stream: BorrowedFd<'_>| stream.try_clone_to_owned();
        let (out, program_out) = match stdout.is_terminal() {
            true => Stream::shown(&stdout, Tame::default(), limit)?,
            false => (Stream::new(None, limit), own(stdout.as_fd())?),
        };
        // Two streams into one file keep their order only where nobody stands between.
        let (err, program_err) = match stderr.is_terminal() {
            true => Stream::shown(&stderr, Tame::default(), limit)?,
            false if is_same(stdout.as_fd(), stderr.as_fd()) => (Stream::new(None, limit), own(stderr.as_fd())?),
            false => Stream::copied(&stderr, limit)?,
        };
        let stdin = if stdin.is_terminal() { None } else { Some(own(stdin.as_fd())?) };
        Ok(Ends { stdin, stdout: program_out, stderr: program_err, out: [out, err], terminal: None })
    }

    fn terminal(limit: usize) -> io::Result<Self> {
        let mut pty = Pty::open()?;
        let program = pty.program.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut out = Stream::new(Some(pty.own.try_clone()?.into()), limit);
        out.show = Some((own_file(&io::stdout())?, Some(Tame::screen())));
        let (stdin, stdout) = (program.try_clone()?, program.try_clone()?);
        let out = [out, Stream::new(None, limit)];
        Ok(Ends { stdin: Some(stdin), stdout, stderr: program, out, terminal: Some(pty) })
    }
}

fn own_file(stream: &impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

fn is_same(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    match (fstat(a), fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// An output stream and what is kept of it.
pub struct Stream {
    /// Where it comes from; `None` at its end.
    source: Option<File>,
    capture: Capture,
    buffer: Vec<u8>,
    /// Where it is copied to, and what becomes of it on a terminal.
    show: Option<(File, Option<Tame>)>,
}

impl Stream {
    fn new(source: Option<OwnedFd>, limit: usize) -> Self {
        let size = if source.is_some() { 64 * 1024 } else { 0 };
        Stream { source: source.map(File::from), capture: Capture::new(limit), buffer: vec![0; size], show: None }
    }

    /// A stream that goes to a terminal, and the program's end of it.
    fn shown(to: &impl AsFd, tame: Tame, limit: usize) -> io::Result<(Self, OwnedFd)> {
        let (mut stream, end) = Self::copied(to, limit)?;
        if let Some((_, tamed)) = &mut stream.show {
            *tamed = Some(tame);
        }
        Ok((stream, end))
    }

    /// A stream that goes on as it is, and the program's end of it.
    fn copied(to: &impl AsFd, limit: usize) -> io::Result<(Self, OwnedFd)> {
        let (source, end) = io::pipe()?;
        let mut stream = Stream::new(Some(source.into()), limit);
        stream.show = Some((own_file(to)?, None));
        Ok((stream, end.into()))
    }

    /// What to wait for; `None` at the end of the stream.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Takes what has come.
    pub fn read(&mut self) {
        let Some(source) = &mut self.source else { return };
        match source.read(&mut self.buffer) {
            Ok(0) => self.source = None,
            Ok(length) => {
                let bytes = self.buffer.get(..length).unwrap_or_default();
                self.capture.push(bytes);
                // Where nobody looks any more, nobody is shown anything.
                match &mut self.show {
                    Some((file, Some(tame))) => drop(file.write_all(&tame.pass(bytes))),
                    Some((file, None)) => drop(file.write_all(bytes)),
                    None => {}
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A terminal that no program has open any more answers with an error.
            Err(_) => self.source = None,
        }
    }

    /// What was kept.
    pub fn into_capture(mut self) -> Capture {
        if let Some((file, Some(tame))) = &mut self.show
            && tame.is_screen()
            && file.is_terminal()
        {
            let _ = file.write_all(RESET);
        }
        self.capture
    }
}
