//! Whether files have changed, however they were replaced.
//!
//! Files are looked at, not listened to: a write, a rename over the name and a swapped symbolic
//! link (as Kubernetes does it) all end in another content at the same path, on every file system.
//! What a directory holds is the names of the files that are read of it.

use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::config::list_directory;

/// Files, as they were when they were last used.
#[derive(Debug, Default)]
pub(crate) struct Files(Vec<File>);

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// What of it is in use.
    used: Content,
    /// What the last look found.
    found: Content,
    stamp: Option<Stamp>,
    /// For how many looks the stamp has been the same.
    rested: u8,
}

/// A digest of what a file holds; nothing if it cannot be read, as while it is replaced.
type Content = Option<[u8; 32]>;

/// What changes with nearly every change of a file and costs no reading: of the file that symbolic
/// links lead to, device, inode, length, and when content and inode were changed.
type Stamp = [u64; 7];

/// A file whose stamp has been the same for so many looks is not read. Two writes within a tick of
/// the file system's clock, which may be as long as two seconds, leave one stamp.
const RESTED: u8 = 10;

impl Files {
    /// Files to be watched; what they hold now is in use.
    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Files(paths.into_iter().map(File::used).collect())
    }

    /// Looks at all of them: whether some hold something else than is in use, and have held just
    /// that at the last look too. Whoever writes slowly is given the time to finish.
    pub(crate) fn have_changed(&mut self) -> bool {
        let looked: Vec<_> = self.0.iter_mut().map(File::look).collect();
        let is_settled = looked.iter().all(|looked| *looked != Look::Moving);
        is_settled && looked.contains(&Look::Other)
    }

    /// Whether some hold something else than is in use at this moment, settled or not.
    pub(crate) fn are_others(&self) -> bool {
        self.0.iter().any(|x| digest(&x.path) != x.used)
    }
}

/// What a look at a file found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// What is in use.
    Used,
    /// Something that the look before has found too.
    Other,
    /// Something new.
    Moving,
}

impl File {
    fn used(path: PathBuf) -> Self {
        let used = digest(&path);
        let stamp = stamp(&path);
        File { path, used, found: used, stamp, rested: 0 }
    }

    fn look(&mut self) -> Look {
        let stamp = stamp(&self.path);
        self.rested = if stamp == self.stamp { self.rested.saturating_add(1) } else { 0 };
        self.stamp = stamp;
        if self.rested < RESTED {
            let before = std::mem::replace(&mut self.found, digest(&self.path));
            if self.found != before {
                return Look::Moving;
            }
        }
        if self.found == self.used { Look::Used } else { Look::Other }
    }
}

fn digest(path: &Path) -> Content {
    match list_directory(path).ok()? {
        None => digest_of_file(path),
        Some(files) => Some(digest_of_names(&files)),
    }
}

/// Of a directory: which files are in it. What they hold is told by looks at them.
fn digest_of_names(files: &[PathBuf]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.as_os_str().as_encoded_bytes());
        // No path has it.
        digest.update([0]);
    }
    digest.finalize().into()
}

fn digest_of_file(path: &Path) -> Content {
    let mut file = fs::File::open(path).ok()?;
    let mut digest = Sha256::new();
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes).ok()? {
            0 => return Some(digest.finalize().into()),
            read => digest.update(bytes.get(..read)?),
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let of = |metadata: Metadata| {
        let bits =
            [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()]
                .map(i64::cast_unsigned);
        let [modified, modified_ns, changed, changed_ns] = bits;
        [metadata.dev(), metadata.ino(), metadata.len(), modified, modified_ns, changed, changed_ns]
    };
    fs::metadata(path).ok().map(of)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder that goes when it is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A change is told at the second look that finds it, and then at each until it is used.
    fn assert_told(files: &mut Files) {
        assert_eq!([0; 3].map(|_| files.have_changed()), [false, true, true]);
    }

    fn assert_quiet(files: &mut Files) {
        assert_eq!([0; 3].map(|_| files.have_changed()), [false; 3]);
    }

    #[test]
    fn a_change_is_told_however_it_was_made() {
        let folder = Folder::new("changes");
        let path = folder.write("a", "one");
        let watch = || Files::of([path.clone()]);
        let mut files = watch();
        assert_quiet(&mut files);
        folder.write("a", "two");
        assert_told(&mut files);

        let mut files = watch();
        fs::rename(folder.write("b", "six"), &path).unwrap();
        assert_told(&mut files);

        fs::remove_file(&path).unwrap();
        symlink(folder.write("first", "1"), &path).unwrap();
        let mut files = watch();
        let swap = folder.0.join("swap");
        symlink(folder.write("second", "2"), &swap).unwrap();
        fs::rename(swap, &path).unwrap();
        assert_told(&mut files);
    }

    #[test]
    fn a_directory_changes_when_files_that_are_read_come_or_go() {
        let folder = Folder::new("listing");
        let watch = || Files::of([folder.0.clone()]);
        for (name, is_told) in
            [("a.yaml", true), ("b.yml", true), ("c.txt", false), (".d.yaml", false)]
        {
            for text in ["one", "two"] {
                let mut files = watch();
                let is_new = !folder.0.join(name).exists();
                folder.write(name, text);
                // What a file holds is told by a look at itself.
                if is_told && is_new { assert_told(&mut files) } else { assert_quiet(&mut files) }
            }
        }
        let mut files = watch();
        fs::rename(folder.0.join("a.yaml"), folder.0.join("e.yaml")).unwrap();
        assert_told(&mut files);
        let mut files = watch();
        fs::remove_dir_all(&folder.0).unwrap();
        assert_told(&mut files);
    }

    #[test]
    fn what_is_still_being_written_is_waited_for() {
        let folder = Folder::new("slowly");
        let path = folder.write("a", "one");
        let mut files = Files::of([path]);
        for text in ["", "tw", "two"] {
            folder.write("a", text);
            assert!(!files.have_changed());
        }
        assert!(files.have_changed());
    }

    #[test]
    fn a_file_that_was_touched_or_put_back_has_not_changed() {
        let folder = Folder::new("same");
        let path = folder.write("a", "one");
        let mut files = Files::of([path.clone()]);
        folder.write("a", "one");
        assert_quiet(&mut files);
        fs::remove_file(&path).unwrap();
        assert!(!files.have_changed());
        folder.write("a", "one");
        assert_quiet(&mut files);
        fs::remove_file(&path).unwrap();
        assert_told(&mut files);
    }

    #[test]
    fn a_file_that_rests_is_not_read_and_still_seen_to_change() {
        let folder = Folder::new("rests");
        let path = folder.write("a", "one");
        let mut files = Files::of([path]);
        for _ in 0..=RESTED {
            assert!(!files.have_changed());
        }
        assert_eq!(files.0[0].rested, RESTED + 1);
        folder.write("a", "other");
        assert_told(&mut files);
    }
}
