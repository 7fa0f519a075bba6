//! ARCHITECTURE.md tells the truth, and crates depend only on what they may know.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Which crates of the workspace a crate may rest on. A line longer than DESIGN asks for is a
/// decision: give its reason in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("tollgate-core", &[]),
    ("tollgate-store", &["core"]),
    ("tollgate-redis", &["core", "store"]),
    ("tollgate-rules", &["core"]),
    ("tollgate-engine", &["core", "rules", "store"]),
    ("tollgate-http", &["core"]),
    ("tollgate-telemetry", &[]),
    ("tollgate-listen", &[]),
    ("tollgate-server", &["core", "engine", "http", "listen", "rules", "telemetry"]),
    ("tollgate-gateway", &["core", "engine", "http", "listen", "rules", "telemetry"]),
    (
        "tollgate-cli",
        &[
            "core",
            "engine",
            "gateway",
            "http",
            "listen",
            "redis",
            "rules",
            "server",
            "store",
            "telemetry",
        ],
    ),
    ("tollgate-testkit", &["core", "store"]),
];

#[test]
fn crates_depend_only_along_the_arrows() {
    let wrong: Vec<_> = dependencies()
        .into_iter()
        .filter(|(from, to)| !arrows_from(from).contains(&to.as_str()))
        .map(|(from, to)| format!("{from} -> tollgate-{to}"))
        .collect();
    assert!(wrong.is_empty(), "these crates must not know each other: {wrong:#?}");
}

#[test]
fn every_crate_has_its_arrows() {
    let in_folder: BTreeSet<_> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let in_table: BTreeSet<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(in_folder, in_table);
}

#[test]
fn everything_named_in_architecture_md_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let sources = Sources::read();
    let names = names_in(&text);
    assert!(names.len() > 20, "only {} names were recognised", names.len());
    let gone: Vec<_> = names.into_iter().filter(|name| !sources.has(name)).collect();
    assert!(gone.is_empty(), "named in ARCHITECTURE.md, but not there: {gone:#?}");
}

#[test]
fn every_crate_is_introduced_in_architecture_md() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (name, _) in ARROWS {
        assert!(text.contains(&format!("**{name}**")), "{name} is not introduced");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn arrows_from(name: &str) -> &'static [&'static str] {
    ARROWS.iter().find(|(from, _)| *from == name).map_or(&[], |(_, to)| to)
}

/// Which crate of ours is built with which other; tests may use what they like.
fn dependencies() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let from = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let ours = dependency["name"].as_str().unwrap().strip_prefix("tollgate-");
            if let Some(to) = ours.filter(|_| dependency["kind"] != "dev") {
                found.push((from.to_owned(), to.to_owned()));
            }
        }
    }
    found
}

fn metadata() -> Value {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What stands between backticks and looks like a file or an item of ours.
fn names_in(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|name| is_file(name) || is_item(name)).collect()
}

fn is_file(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let ending = [".rs", ".toml", ".md", ".json", ".yaml", ".lua", "/"];
    name.chars().all(plain)
        && !name.starts_with('/')
        && ending.iter().any(|end| name.ends_with(end))
}

fn is_item(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    name.contains("::") && name.chars().all(plain)
}

/// All Rust of the crates, as text.
struct Sources(Vec<(String, String)>);

impl Sources {
    fn read() -> Self {
        let mut all = Vec::new();
        for (name, _) in ARROWS {
            let mut text = String::new();
            append_folder(&root().join("crates").join(name).join("src"), &mut text);
            all.push((name.replace('-', "_"), text));
        }
        Self(all)
    }

    fn has(&self, name: &str) -> bool {
        if is_file(name) {
            return [root(), root().join("crates")].iter().any(|at| at.join(name).exists());
        }
        let mut words = name.split("::").peekable();
        let within = words.peek().copied().unwrap_or_default();
        match self.0.iter().find(|(found, _)| found == within) {
            Some((_, text)) => words.skip(1).all(|word| defines(text, word)),
            None => {
                let words: Vec<_> = words.collect();
                self.0.iter().any(|(_, text)| words.iter().all(|word| defines(text, word)))
            }
        }
    }
}

fn append_folder(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            append_folder(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Whether the text defines something of that name, be it a variant of an enum.
fn defines(text: &str, name: &str) -> bool {
    let words = ["fn", "struct", "enum", "trait", "mod", "const", "type", "static"];
    let ends_here = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let follows = |start: &str| text.split(start).skip(1).any(ends_here);
    words.iter().any(|word| follows(&format!("{word} {name}")))
        || text.lines().any(|line| line.trim_start().strip_prefix(name).is_some_and(is_variant_end))
}

fn is_variant_end(rest: &str) -> bool {
    matches!(rest.trim_start().chars().next(), Some(',' | '(' | '{'))
}
