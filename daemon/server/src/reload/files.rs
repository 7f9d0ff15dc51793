//! Detecting changed files, however they were replaced.
//!
//! Files are polled, because a write, a rename and a swapped symbolic link (as in Kubernetes) all
//! change the content at the same path, on every file system. The content of a directory is the
//! list of the files in it that are read.

use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use tollgate_config::list_directory;

/// Watched files, with the content that is in use.
#[derive(Debug, Default)]
pub(crate) struct Files(Vec<File>);

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// The content in use.
    active: Content,
    /// The content at the last poll.
    current: Content,
    stamp: Option<Stamp>,
    /// The number of polls since the stamp last changed.
    unchanged_polls: u8,
}

/// The digest of a file; `None` if it cannot be read, for example while it is replaced.
type Content = Option<[u8; 32]>;

/// Metadata that changes with nearly every change of a file: device, inode, length, `mtime` and
/// `ctime` of the file that symbolic links lead to.
type Stamp = [u64; 7];

/// A file whose stamp has been the same for this many polls is not read again. Fewer would miss a
/// second write within one tick of the file system's clock, which can be two seconds long.
const MAX_UNCHANGED_POLLS: u8 = 10;

impl Files {
    /// Watches files; their current content counts as in use.
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Files(paths.into_iter().map(File::new).collect())
    }

    /// Polls all files. Returns whether some differ from the content in use and none has changed
    /// since the last poll, so that a slow writer can finish.
    pub(crate) fn have_changed(&mut self) -> bool {
        // Polls every file, without short-circuiting.
        let polls: Vec<_> = self.0.iter_mut().map(File::poll).collect();
        !polls.contains(&Poll::Changing) && polls.contains(&Poll::Changed)
    }

    /// Whether some differ from the content in use at this moment, even if still being written.
    pub(crate) fn differ_now(&self) -> bool {
        self.different().next().is_some()
    }

    /// Those that differ from the content in use at this moment.
    pub(crate) fn different(&self) -> impl Iterator<Item = &Path> {
        let different = self.0.iter().filter(|file| digest(&file.path) != file.active);
        different.map(|file| &*file.path)
    }
}

/// The result of polling a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Poll {
    /// The content in use.
    Active,
    /// Another content, the same as at the last poll.
    Changed,
    /// Content that differs from the last poll.
    Changing,
}

impl File {
    fn new(path: PathBuf) -> Self {
        let active = digest(&path);
        let stamp = stamp(&path);
        File { path, active, current: active, stamp, unchanged_polls: 0 }
    }

    fn poll(&mut self) -> Poll {
        let stamp = stamp(&self.path);
        let is_unchanged = stamp == self.stamp;
        self.unchanged_polls =
            if is_unchanged { self.unchanged_polls.saturating_add(1) } else { 0 };
        self.stamp = stamp;
        if self.unchanged_polls < MAX_UNCHANGED_POLLS {
            let before = std::mem::replace(&mut self.current, digest(&self.path));
            if self.current != before {
                return Poll::Changing;
            }
        }
        if self.current == self.active { Poll::Active } else { Poll::Changed }
    }
}

fn digest(path: &Path) -> Content {
    match list_directory(path).ok()? {
        None => digest_of_file(path),
        Some(files) => Some(digest_of_names(&files)),
    }
}

/// The digest of the names in a directory. The contents of its files are watched separately.
fn digest_of_names(files: &[PathBuf]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.as_os_str().as_encoded_bytes());
        // A separator that no path contains.
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
    let stamp = |metadata: Metadata| {
        let bits =
            [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()]
                .map(i64::cast_unsigned);
        let [modified, modified_ns, changed, changed_ns] = bits;
        [metadata.dev(), metadata.ino(), metadata.len(), modified, modified_ns, changed, changed_ns]
    };
    fs::metadata(path).ok().map(stamp)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tollgate_testkit::Folder;

    use super::*;

    /// A change is reported from the second poll that finds it until the content is in use.
    fn assert_reported(files: &mut Files) {
        assert_eq!([0; 3].map(|_| files.have_changed()), [false, true, true]);
    }

    fn assert_not_reported(files: &mut Files) {
        assert_eq!([0; 3].map(|_| files.have_changed()), [false; 3]);
    }

    #[test]
    fn writes_renames_and_swapped_links_are_reported() {
        let folder = Folder::create();
        let path = folder.write("a", "one");
        let watch = || Files::new([path.clone()]);
        let mut files = watch();
        assert_not_reported(&mut files);
        folder.write("a", "two");
        assert_reported(&mut files);

        let mut files = watch();
        fs::rename(folder.write("b", "six"), &path).unwrap();
        assert_reported(&mut files);

        fs::remove_file(&path).unwrap();
        symlink(folder.write("first", "1"), &path).unwrap();
        let mut files = watch();
        let swap = folder.join("swap");
        symlink(folder.write("second", "2"), &swap).unwrap();
        fs::rename(swap, &path).unwrap();
        assert_reported(&mut files);
    }

    #[test]
    fn directories_change_when_files_that_are_read_are_added_or_removed() {
        let folder = Folder::create();
        let watch = || Files::new([folder.path().to_owned()]);
        for (name, is_read) in
            [("a.yaml", true), ("b.yml", true), ("c.txt", false), (".d.yaml", false)]
        {
            for text in ["one", "two"] {
                let mut files = watch();
                let is_new = !folder.join(name).exists();
                folder.write(name, text);
                // The content of a file is not part of its directory's content.
                if is_read && is_new {
                    assert_reported(&mut files)
                } else {
                    assert_not_reported(&mut files)
                }
            }
        }
        let mut files = watch();
        fs::rename(folder.join("a.yaml"), folder.join("e.yaml")).unwrap();
        assert_reported(&mut files);
        let mut files = watch();
        fs::remove_dir_all(folder.path()).unwrap();
        assert_reported(&mut files);
    }

    #[test]
    fn a_file_that_is_still_being_written_is_not_reported() {
        let folder = Folder::create();
        let path = folder.write("a", "one");
        let mut files = Files::new([path]);
        for text in ["", "tw", "two"] {
            folder.write("a", text);
            assert!(!files.have_changed());
        }
        assert!(files.have_changed());
    }

    #[test]
    fn rewriting_the_same_content_is_not_reported() {
        let folder = Folder::create();
        let path = folder.write("a", "one");
        let mut files = Files::new([path.clone()]);
        folder.write("a", "one");
        assert_not_reported(&mut files);
        fs::remove_file(&path).unwrap();
        assert!(!files.have_changed());
        folder.write("a", "one");
        assert_not_reported(&mut files);
        fs::remove_file(&path).unwrap();
        assert_reported(&mut files);
    }

    #[test]
    fn a_change_after_reading_has_paused_is_reported() {
        let folder = Folder::create();
        let path = folder.write("a", "one");
        let mut files = Files::new([path]);
        for _ in 0..=MAX_UNCHANGED_POLLS {
            assert!(!files.have_changed());
        }
        assert_eq!(files.0[0].unchanged_polls, MAX_UNCHANGED_POLLS + 1);
        folder.write("a", "other");
        assert_reported(&mut files);
    }
}
