//! The commands in `docs/pictures/README.md` draw its pictures.

use std::fs;

use tollgate_testkit::{Folder, assert_up_to_date};

use crate::process::{read_repository, repository};
use crate::tool::shell;

/// The maximum size of a picture.
const MAX_PICTURE_BYTES: usize = 60_000;

#[test]
fn commands_draw_the_pictures_of_the_page() {
    let page = read_repository("docs/pictures/README.md");
    let folder = Folder::create();
    let mut drawn = Vec::new();
    for command in page.lines().filter(|line| line.starts_with("tollgate replay ")) {
        shell(command, &folder);
        let name = command.rsplit(' ').next().unwrap();
        let picture = fs::read_to_string(folder.join(name)).unwrap();
        assert!(picture.len() < MAX_PICTURE_BYTES, "{name} has {} bytes", picture.len());
        assert!(page.contains(&format!("]({name})")), "{name} is not shown");
        assert_up_to_date(&format!("docs/pictures/{name}"), &picture, "tollgate-cli", "replay");
        drawn.push(name.to_owned());
    }
    let files = fs::read_dir(repository("docs/pictures")).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.filter(|name| name.ends_with(".svg")).collect();
    files.sort();
    drawn.sort();
    assert_eq!(files, drawn);
}
