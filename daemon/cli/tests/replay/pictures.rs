//! The commands in `docs/pictures/README.md` draw its pictures.

use std::fs;
use std::path::Path;

use crate::process::{Directory, shell};

/// The maximum size of a picture.
const MAX_PICTURE_BYTES: usize = 60_000;

#[test]
fn commands_draw_the_pictures_of_the_page() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let page = fs::read_to_string(home.join("README.md")).unwrap();
    let directory = Directory::new();
    let commands: Vec<&str> =
        page.lines().filter(|line| line.starts_with("tollgate replay ")).collect();
    let mut drawn = Vec::new();
    for command in commands {
        shell(command, &directory);
        let name = command.rsplit(' ').next().unwrap();
        let picture = fs::read_to_string(directory.path(name)).unwrap();
        assert!(picture.len() < MAX_PICTURE_BYTES, "{name} has {} bytes", picture.len());
        assert!(page.contains(&format!("]({name})")), "{name} is not shown");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(home.join(name), &picture).unwrap();
        }
        let kept = fs::read_to_string(home.join(name)).unwrap();
        assert!(kept == picture, "docs/pictures/{name} is out of date; UPDATE=1 writes it");
        drawn.push(name.to_owned());
    }
    let files = fs::read_dir(&home).unwrap().map(|x| x.unwrap().file_name());
    let files = files.map(|file| file.into_string().unwrap()).filter(|i| i.ends_with(".svg"));
    let mut files: Vec<String> = files.collect();
    files.sort();
    drawn.sort();
    assert_eq!(files, drawn);
}
