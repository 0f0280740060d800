use std::fs;
use std::path::Path;

use nix::mount::{MsFlags, mount, umount};
use portcullis::audit::{Content, Event, Log, LogError, Trouble, log_file, read, verify};
use portcullis::state::StateDir;
use portcullis::verdict::Decision;

use crate::support::{decided, finished};

/// A file system of 512 KiB, gone at the end.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> nix::Result<Self> {
        mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some("size=512k,mode=700"))?;
        Ok(SmallDisk(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        umount(self.0).unwrap();
    }
}

#[test]
fn i3_a_full_disk_is_said_stops_the_log_and_loses_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(temp.path()) {
        Ok(disk) => disk,
        Err(e) => {
            eprintln!("SKIPPED 1 of 1 full-disk checks: a tmpfs cannot be mounted here ({e}); run it as root");
            return;
        }
    };
    let state = StateDir::open(temp.path().join("state")).unwrap();
    let log = Log::open(&state).unwrap();
    let ballast = temp.path().join("ballast");
    fs::write(&ballast, vec![0; 300 * 1024]).unwrap();

    let mut written = 1_u64;
    let error = loop {
        match log.append_durable(&decided(&format!("c{written}"), Decision::Deny)) {
            Ok(seq) => assert_eq!(seq, written, "the log skipped a number"),
            Err(e) => break e,
        }
        written += 1;
    };
    assert!(matches!(error, LogError::Full(_)), "a full disk was reported as: {error}");
    assert!(error.to_string().contains("free some space"), "no remedy in: {error}");
    let stopped = log.append(&finished("c")).unwrap_err();
    assert!(matches!(stopped, LogError::Stopped { .. }), "the log went on: {stopped}");
    let report = verify(&log_file(state.path())).unwrap();
    assert!(report.sound() && report.records == written, "half a line stayed, or records are lost: {report:?}");

    // What is left of the last page may hold a few short records that say so, but never a call's.
    let mut reopened = 0;
    while log.reopen().is_ok() {
        reopened += 1;
        assert!(reopened < 20, "it keeps reopening on a disk that is full");
        let again = log.append(&decided("c", Decision::Deny));
        assert!(matches!(again, Err(LogError::Full(_))), "written on a full disk: {again:?}");
    }
    let other = Log::open(&state).unwrap();
    assert!(matches!(other.append(&decided("o", Decision::Deny)), Err(LogError::Full(_))), "another writer");
    drop(other);

    fs::remove_file(&ballast).unwrap();
    log.reopen().unwrap();
    log.append_durable(&decided("again", Decision::Deny)).unwrap();
    let stops: Vec<Trouble> = read::records(&log_file(state.path()))
        .unwrap()
        .filter_map(|record| match record.unwrap().content {
            Content::Event(Event::Recovered(recovered)) => Some(recovered.trouble),
            _ => None,
        })
        .collect();
    assert_eq!(stops.len(), reopened + 1, "each reopening is on record: {stops:?}");
    assert!(
        matches!(&stops[0], Trouble::Stopped { reason, from } if reason.contains("no space") && *from == written),
        "the stop is not on record: {stops:?}"
    );
    let report = verify(&log_file(state.path())).unwrap();
    assert!(report.sound() && report.records == written + stops.len() as u64 + 1, "{report:?}");
    drop(log);
    drop(disk);
}
