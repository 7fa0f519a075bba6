//! Whether what the documentation shows is true.
//!
//! Every YAML block of the README and of `docs/` is a configuration that the program takes: pieces
//! are whole sections, so they can be checked by themselves. One that begins with the comment
//! `# tollgate.yaml` is a file to start with, so it opens a listener too.

mod support;

use std::path::{Path, PathBuf};

use support::{finish, write};
use tollgate_testkit::servers::TlsFiles;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The README and everything in `docs/`.
fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).expect("the folder is there");
    let docs = docs.map(|entry| entry.expect("it can be listed").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "md");
    std::iter::once(root().join("README.md")).chain(docs.filter(is_page)).collect()
}

/// The blocks of this language, each with the number of its first line.
fn blocks(page: &str, language: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, usize, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (line.strip_prefix("```"), open.take()) {
            (Some(named), None) => open = Some((named == language, number + 1, String::new())),
            (Some(_), Some((wanted, first, block))) if wanted => blocks.push((first, block)),
            (None, Some((wanted, first, block))) => {
                open = Some((wanted, first, block + line + "\n"));
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

#[test]
fn every_configuration_in_the_documentation_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    // What an operator has there is made for the occasion: `check` reads it.
    TlsFiles::make(folder.path()).unwrap();
    let here = format!("{}/", folder.path().display());
    let mut files = 0;
    for page in pages() {
        for (line, block) in blocks(&text(&page), "yaml") {
            let place = format!("{}:{line}", page.display());
            let is_file = block.starts_with("# tollgate.yaml\n");
            files += usize::from(is_file);
            // A piece of a file is shown without what opens a listener.
            let listens = is_file || block.contains("listen:");
            let rest = if listens { "" } else { "listen: {http: 127.0.0.1:8082}\n" };
            let block = block.replace("/etc/tollgate/", &here);
            let path = write(folder.path(), &(block + rest));
            let (code, _, told) = finish(&["check", "-c", &path]);
            assert_eq!(code, Some(0), "{place}\n{told}");
        }
    }
    assert!(files >= 2, "README.md and docs/configuration.md show a whole file each");
}

#[test]
fn every_setting_stands_in_the_documentation() {
    let page = text(&root().join("docs/configuration.md"));
    let (_, schema, _) = finish(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let sections = schema["$defs"].as_object().unwrap();
    for (section, described) in std::iter::once(("the root", &schema))
        .chain(sections.iter().map(|(name, described)| (name.as_str(), described)))
        // What is not available yet is named as a whole.
        .filter(|(name, _)| !["envoy", "queue"].contains(name))
    {
        for setting in described["properties"].as_object().into_iter().flat_map(|all| all.keys()) {
            let named = [format!("`{setting}"), format!(".{setting}`"), format!("{{{setting}:")];
            let is_named = named.iter().any(|name| page.contains(name));
            assert!(is_named, "docs/configuration.md lacks {setting} of {section}");
        }
    }
}

#[test]
fn every_command_named_in_the_documentation_is_there() {
    let makefile = text(&root().join("Makefile"));
    let mut commands = 0;
    for page in pages().into_iter().chain([root().join("CONTRIBUTING.md")]) {
        for named in made(&text(&page)) {
            let is_there = makefile.lines().any(|line| line.starts_with(&format!("{named}:")));
            assert!(is_there, "{}: there is no `make {named}`", page.display());
            commands += 1;
        }
    }
    assert!(commands > 0);
}

/// What `make` is told, in a line of its own or between backticks.
fn made(page: &str) -> impl Iterator<Item = &str> {
    let commands = ["\nmake ", "`make "].into_iter().flat_map(|lead| page.split(lead).skip(1));
    commands.filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next())
}

#[test]
fn every_page_that_is_linked_is_there() {
    let others = ["CONTRIBUTING.md", "CHANGELOG.md"].map(|page| root().join(page));
    for page in pages().into_iter().chain(others) {
        let text = text(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let folder = page.parent().unwrap();
            assert!(folder.join(file).exists(), "{} links {link}", page.display());
        }
    }
}
