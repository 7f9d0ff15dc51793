//! `cargo xtask book`: the pages of `docs/` as a book. The index of the pages, `docs/README.md`, is its
//! table of contents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::published::workspace_field;
use crate::{Subcommand, deps, process, repository};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "book",
    usage: "",
    about: "builds the pages of docs/ as a book in target/book",
    run,
};

const CONFIG: &str = "[book]\ntitle = \"Tollgate\"\nlanguage = \"en\"\n\n[output.html]\n\
                      no-section-label = true\n\n[output.html.print]\nenable = false\n";

fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    let root = repository::root();
    deps::mdbook(&root)?;
    println!("{}", build(&root)?.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the book and checks its links; `lychee` is the link checker.
pub(crate) fn check(root: &Path, lychee: &Path) -> Result<()> {
    let pages = build(root)?;
    let mut links = Command::new(lychee);
    links.current_dir(root).args(["--offline", "--include-fragments", "--no-progress"]);
    // The page for unknown addresses has absolute links.
    links.args(["--exclude-path", "404.html", "--"]).arg(pages);
    process::run(links)
}

/// Builds the book and returns the folder of its pages.
fn build(root: &Path) -> Result<PathBuf> {
    let book = root.join("target/book");
    let source = book.join("src");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    let outside = format!("{}/blob/main/", workspace_field(root, "repository")?);
    let mut pages = Vec::new();
    for name in repository::files(root)? {
        let Some(page) = name.strip_prefix("docs/") else { continue };
        let to = source.join(page);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        if page.ends_with(".md") {
            let text = fs::read_to_string(root.join(&name))?;
            fs::write(to, rewrite_links(&text, page, &outside))?;
            pages.push(page.to_owned());
        } else {
            fs::copy(root.join(&name), to)?;
        }
    }
    let index = fs::read_to_string(root.join("docs/README.md"))?;
    fs::write(source.join("SUMMARY.md"), summary(&index, &pages)?)?;
    fs::write(book.join("book.toml"), CONFIG)?;
    let mut mdbook = Command::new("mdbook");
    mdbook.current_dir(root).args(["build", "target/book"]);
    process::run(mdbook)?;
    Ok(book.join("book"))
}

/// The table of contents: the first link to each page in the index, by section.
fn summary(index: &str, pages: &[String]) -> Result<String> {
    let mut summary = "# Summary\n\n[Overview](README.md)\n".to_owned();
    let mut listed = vec!["README.md"];
    // The tasks link into pages of the other sections.
    let sections = index.split("\n## ").skip(1).filter(|section| !section.starts_with("Tasks\n"));
    for section in sections {
        let mut items = String::new();
        for link in section.split('[').skip(1) {
            let parts = link.split_once("](").and_then(|(title, rest)| {
                let (target, _) = rest.split_once(')')?;
                Some((title, target))
            });
            let Some((title, target)) = parts else { continue };
            if target.ends_with(".md") && !target.starts_with("..") && !listed.contains(&target) {
                items += &format!("- [{title}]({target})\n");
                listed.push(target);
            }
        }
        if !items.is_empty() {
            let heading = section.lines().next().unwrap_or_default();
            summary += &format!("\n# {heading}\n\n{items}");
        }
    }
    for page in pages {
        ensure!(listed.contains(&&**page), "docs/README.md has no link to {page} below Tasks");
    }
    Ok(summary)
}

/// Links to files outside the book lead to the repository. The index of a folder is `index.html`.
fn rewrite_links(text: &str, page: &str, outside: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut rewritten = String::new();
    let mut parts = text.split("](");
    rewritten += parts.next().unwrap_or_default();
    for part in parts {
        rewritten += "](";
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        let is_local = !target.contains("://") && !target.starts_with('#');
        match resolve(folder, target).filter(|_| is_local) {
            Some(path) => rewritten += &format!("{outside}{path}"),
            None if is_local => rewritten += &target.replace("README.md", "index.md"),
            None => rewritten += target,
        }
        if part.contains(')') {
            rewritten.push(')');
        }
        rewritten += rest;
    }
    rewritten
}

/// The path of a link in the repository, if it leads out of `docs/`.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut path: Vec<&str> = ["docs"].into_iter().chain(folder.split('/')).collect();
    path.retain(|part| !part.is_empty());
    for part in target.split('/') {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
    }
    (path.first() != Some(&"docs")).then(|| path.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let check = |page: &str, link: &str, expected: &str| {
            let rewritten = rewrite_links(&format!("a [b]({link}) c"), page, "R/");
            assert_eq!(rewritten, format!("a [b]({expected}) c"));
        };
        check("a.md", "../DESIGN.md#limits", "R/DESIGN.md#limits");
        check("gateways/a.md", "../../crates/tower", "R/crates/tower");
        check("gateways/a.md", "../security.md#tls", "../security.md#tls");
        check("a.md", "gateways/README.md#table", "gateways/index.md#table");
        check("a.md", "#part", "#part");
        check("a.md", "https://example.com/README.md", "https://example.com/README.md");
        assert_eq!(rewrite_links("no link", "a.md", "R/"), "no link");
    }

    #[test]
    fn table_of_contents_has_each_page_once() {
        let index = "# D\n\n## Tasks\n\n[T](b.md#x)\n\n## One\n\n| [A](a.md) | [A2](a.md) |\n\
                     [C](../C.md)\n\n## Two\n\n[B](b.md)\n";
        let pages =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let summary = summary(index, &pages(&["README.md", "a.md", "b.md"])).unwrap();
        let expected =
            "# Summary\n\n[Overview](README.md)\n\n# One\n\n- [A](a.md)\n\n# Two\n\n- [B](b.md)\n";
        assert_eq!(summary, expected);
        assert!(super::summary(index, &pages(&["z.md"])).is_err());
    }
}
