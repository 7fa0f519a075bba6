use std::{
    fs,
    io::Write,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn entry(path: &str) -> Entry<'_> {
    Entry {
        at_micros: 0,
        client: [127, 0, 0, 1].into(),
        method: "GET",
        path,
        status: 200,
        bytes: 0,
        duration: Duration::ZERO,
        route: None,
        policy: None,
        limited: false,
        dry_run_limited: false,
        upstream: None,
        correlation_id: "abc",
    }
}

/// A target that takes nothing before it is told to, as a full disk or a stuck pipe would.
struct Stuck {
    go: Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
    fails: bool,
}

fn stuck(fails: bool) -> (SyncSender<()>, Arc<Mutex<Vec<u8>>>, Target) {
    let (send, go) = sync_channel(1_000);
    let written = Arc::default();
    let target = Stuck { go, written: Arc::clone(&written), fails };
    (send, written, Target::other(Box::new(target)))
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Once nobody can tell any more, it takes everything.
        let _ = self.go.recv();
        if self.fails {
            return Err(io::Error::other("no space left"));
        }
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// covers: C15
#[test]
fn a_normal_stop_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let dropped = Counter::default();
    let log = AccessLog::start(Format::Text, Some(path.clone()), dropped.clone()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| log.write(&entry("/a"))));
        }
    });
    drop(log);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2_000);
    assert_eq!(dropped.get(), 0);
}

#[test]
fn a_flush_waits_for_the_lines_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = AccessLog::start(Format::Json, Some(path.clone()), Counter::default()).unwrap();
    for lines in 1..=20 {
        log.write(&entry("/a"));
        assert!(log.flush(LONG));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), lines);
    }
    assert!(log.flush(Duration::ZERO), "nothing is waiting, so there is nothing to wait for");
}

// covers: C15
#[test]
fn a_stuck_target_costs_lines_and_never_a_request() {
    let (go, written, target) = stuck(false);
    let dropped = Counter::default();
    let log = AccessLog::to(Format::Text, target, dropped.clone()).unwrap();
    let path = "/".repeat(10_000);
    let lines = 2_000;
    (0..lines).for_each(|_| log.write(&entry(&path)));
    assert!(!log.flush(Duration::ZERO));
    let lost = dropped.get();
    assert!(lost > 1_000, "{lost} lines were dropped");

    drop(go);
    drop(log);
    let written = written.lock().unwrap();
    let kept = written.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(kept + lost, lines);
}

#[test]
fn lines_that_the_target_refuses_are_counted() {
    let (go, _, target) = stuck(true);
    let dropped = Counter::default();
    let log = AccessLog::to(Format::Text, target, dropped.clone()).unwrap();
    drop(go);
    log.write(&entry("/a"));
    log.write(&entry("/b"));
    assert!(log.flush(LONG));
    assert_eq!(dropped.get(), 2);
}

// covers: C15
#[test]
fn after_a_rotation_lines_go_to_the_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rotated) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let log = AccessLog::start(Format::Text, Some(path.clone()), Counter::default()).unwrap();
    log.write(&entry("/before"));
    assert!(log.flush(LONG));
    fs::rename(&path, &rotated).unwrap();
    log.write(&entry("/between"));
    log.reopen();
    assert!(log.flush(LONG));
    log.write(&entry("/after"));
    drop(log);
    let (old, new) = (fs::read_to_string(&rotated).unwrap(), fs::read_to_string(&path).unwrap());
    assert!(old.contains("/before") && old.contains("/between") && !old.contains("/after"));
    assert!(new.contains("/after") && new.lines().count() == 1);
}

#[test]
fn a_rotation_that_fails_goes_on_with_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("logs");
    fs::create_dir(&inner).unwrap();
    let log =
        AccessLog::start(Format::Text, Some(inner.join("access.log")), Counter::default()).unwrap();
    let moved = folder.path().join("moved");
    fs::rename(&inner, &moved).unwrap();
    log.reopen();
    log.write(&entry("/after"));
    drop(log);
    assert!(fs::read_to_string(moved.join("access.log")).unwrap().contains("/after"));
}

#[test]
fn a_file_that_cannot_be_opened_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/access.log");
    let error = AccessLog::start(Format::Text, Some(path), Counter::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
