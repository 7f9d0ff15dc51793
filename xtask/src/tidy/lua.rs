//! Lua files of the Redis store: each is part of the script, and names the rows that hold it to what
//! it should do.

use super::source::{File, Tree};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "lua", find };

const FOLDER: &str = "crates/redis/";
const SCRIPT: &str = "crates/redis/src/script.rs";
const ROWS: &str = "testing/conformance/rows";

fn find(tree: &Tree) -> Vec<Finding> {
    let is_ours = |file: &&File| file.path.starts_with(FOLDER) && file.path.ends_with(".lua");
    let lua = tree.files.iter().filter(is_ours);
    let script = tree.files.iter().find(|file| file.path == SCRIPT);
    let script = script.map_or("", |file| &file.text);
    lua.flat_map(|file| [unused(file, script), without_rows(file, tree)]).flatten().collect()
}

fn unused(file: &File, script: &str) -> Option<Finding> {
    let name = file.path.split_once("/lua/").map_or(&*file.path, |(_, name)| name);
    let used = script.contains(&format!("../lua/{name}\""));
    (!used).then(|| Finding::new(&file.path, 1, format!("not part of {SCRIPT}")))
}

fn without_rows(file: &File, tree: &Tree) -> Option<Finding> {
    let mut lines = file.text.lines().enumerate();
    let Some((at, rows)) = lines.find_map(|(at, line)| Some((at, line.strip_prefix("-- Rows: ")?)))
    else {
        let message = format!("no line `-- Rows: …` names files below {ROWS}");
        return Some(Finding::new(&file.path, 1, message));
    };
    let is_missing = |name: &&str| !tree.names.contains(&format!("{ROWS}/{name}"));
    let missing = rows.split(", ").find(is_missing)?;
    Some(Finding::new(&file.path, at + 1, format!("there are no rows {missing}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lua_without_rows_or_use_is_found() {
        let check = |lua: &str, script: &str, found: usize| {
            let rows = format!("{ROWS}/limits/log.rows");
            let files = [("crates/redis/lua/a/b.lua", lua), (SCRIPT, script), (&*rows, "rows 0\n")];
            assert_eq!(find(&Tree::of(&files)).len(), found, "{lua:?}, {script:?}");
        };
        let used = "include_str!(\"../lua/a/b.lua\"),";
        check("-- Rows: limits/log.rows\n", used, 0);
        check("-- Rows: limits/log.rows\n", "", 1);
        check("-- It does this.\n", used, 1);
        check("-- Rows: limits/log.rows, limits/none.rows\n", used, 1);
        check("return 1\n", "", 2);
    }
}
