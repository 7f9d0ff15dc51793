//! The snapshot directory.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate_state::{InvalidSnapshot, SnapshotDir, SnapshotError};

use crate::{Bench, builder, named};

/// Returns an empty directory for a test.
fn empty_dir(test: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("snapshot-{test}"));
    if place.exists() {
        fs::remove_dir_all(&place).unwrap();
    }
    place
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_store_is_saved_and_restored() {
    let place = empty_dir("restored").join("created/for it");
    let bench = Bench::new();
    let api = named("api", "5/h");
    let _ = bench.check(&api, b"k", 2);
    let dir = SnapshotDir::open(&place).unwrap();
    assert_eq!(dir.path(), place);
    let (_, restored) = dir.restore(builder(&bench.clock)).unwrap();
    assert_eq!((restored.taken, restored.keys), (None, 0), "there was none");
    let report = dir.save(&bench.store).unwrap();
    assert_eq!(report.keys, 1);
    assert_eq!(fs::metadata(place.join("snapshot")).unwrap().len(), report.bytes);
    let _ = bench.check(&api, b"k", 1);
    dir.save(&bench.store).unwrap();
    assert_eq!(names(&place), ["lock", "snapshot"]);
    drop(dir);

    let dir = SnapshotDir::open(&place).unwrap();
    let (store, restored) = dir.restore(builder(&bench.clock)).unwrap();
    assert_eq!((restored.taken, restored.keys), (Some(crate::START), 1));
    let restored = Bench { clock: bench.clock, store };
    assert_eq!(restored.remaining(&api, b"k"), 2);
}

#[test]
fn a_directory_is_locked_for_one_process() {
    let place = empty_dir("locked");
    let first = SnapshotDir::open(&place).unwrap();
    let error = SnapshotDir::open(&place).unwrap_err();
    assert!(matches!(&error, SnapshotError::Locked { dir } if *dir == place));
    let text = error.to_string();
    assert!(
        text.contains(place.to_str().unwrap()) && text.contains("in use by another process"),
        "{text}"
    );
    drop(first);
    SnapshotDir::open(&place).unwrap();
}

#[test]
fn an_invalid_snapshot_is_quarantined_and_reported() {
    let place = empty_dir("quarantined");
    let bench = Bench::new();
    let _ = bench.check(&named("api", "5/h"), b"k", 1);
    let mut damaged = bench.saved();
    damaged[30] ^= 1;
    let mut newer = bench.saved();
    newer[8] = 7;
    let dir = SnapshotDir::open(&place).unwrap();
    let rows = [
        (b"not a snapshot".to_vec(), InvalidSnapshot::Foreign),
        (damaged, InvalidSnapshot::Checksum),
        (newer, InvalidSnapshot::Version(7)),
        (bench.saved()[..40].to_vec(), InvalidSnapshot::Truncated),
        (Vec::new(), InvalidSnapshot::Truncated),
    ];
    for (bytes, reason) in rows {
        fs::write(place.join("snapshot"), &bytes).unwrap();
        let (store, restored) = dir.restore(builder(&bench.clock)).unwrap();
        assert_eq!((store.stats().keys, restored.keys, restored.taken), (0, 0, None));
        let quarantined = restored.quarantined.unwrap();
        assert_eq!(quarantined.reason, reason);
        assert_eq!(fs::read(&quarantined.path).unwrap(), bytes, "the file is unchanged");
        assert!(quarantined.path.starts_with(&place) && !place.join("snapshot").exists());
    }
    let files = names(&place);
    assert_eq!(files.len(), 4, "the lock and the newest three: {files:?}");
    assert_eq!(dir.save(&bench.store).unwrap().keys, 1);
    assert_eq!(dir.restore(builder(&bench.clock)).unwrap().1.keys, 1);
}

#[test]
fn an_unfinished_file_is_removed_and_the_previous_snapshot_stays() {
    let place = empty_dir("unfinished");
    let bench = Bench::new();
    let _ = bench.check(&named("api", "5/h"), b"k", 1);
    let dir = SnapshotDir::open(&place).unwrap();
    dir.save(&bench.store).unwrap();
    drop(dir);
    fs::write(place.join("snapshot.unfinished"), &bench.saved()[..50]).unwrap();
    let dir = SnapshotDir::open(&place).unwrap();
    assert_eq!(names(&place), ["lock", "snapshot"]);

    // A directory in the way: nothing can be written, and nothing is lost.
    fs::create_dir(place.join("snapshot.unfinished")).unwrap();
    let error = dir.save(&bench.store).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("snapshot.unfinished"), "{error}");
    assert_eq!(dir.restore(builder(&bench.clock)).unwrap().1.keys, 1);
}

#[test]
fn unusable_paths_are_rejected_with_a_remedy() {
    let place = empty_dir("refused");
    fs::create_dir_all(&place).unwrap();
    let file = place.join("file");
    fs::write(&file, b"").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = SnapshotDir::open(&path).unwrap_err().to_string();
        let remedy = "choose a directory that only tollgate uses";
        assert!(error.contains(path.to_str().unwrap()) && error.ends_with(remedy), "{error}");
    }
    // A directory in place of the snapshot is an I/O error, not an invalid snapshot.
    let dir = SnapshotDir::open(place.join("dir")).unwrap();
    fs::create_dir(dir.path().join("snapshot")).unwrap();
    let error = dir.restore(builder(&Bench::new().clock)).unwrap_err().to_string();
    assert!(error.contains("cannot read"), "{error}");
    assert_eq!(names(dir.path()), ["lock", "snapshot"]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_snapshot() {
    use std::os::unix::fs::PermissionsExt;
    let place = empty_dir("private");
    let dir = SnapshotDir::open(&place).unwrap();
    dir.save(&Bench::new().store).unwrap();
    let mode = fs::metadata(place.join("snapshot")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
