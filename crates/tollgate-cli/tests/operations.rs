//! Whether docs/operations.md shows what an operator sees.
//!
//! Its commands are run in order, by a shell, against a real Redis and a node with the page's own
//! configuration. Texts must be as they stand there; numbers may differ a little, because time
//! passes, and times of day by any amount. `UPDATE_EXPECT=1` writes what was seen into the page.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fmt::Write, path::PathBuf, process::Command};

use support::Tollgate;
use tollgate_testkit::servers::redis;

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md")
}

/// What the shell prints for a command that is written for the usual ports.
fn run(command: &str, http: &str, redis_port: u16) -> String {
    // Not on a terminal redis-cli would leave out what tells types apart.
    let command = command
        .replace("127.0.0.1:8082", http)
        .replace("redis-cli", &format!("redis-cli --no-raw -p {redis_port}"));
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    text.replace(http, "127.0.0.1:8082").trim_end().to_owned()
}

/// The text without its numbers, and the numbers.
fn taken_apart(text: &str) -> (String, Vec<f64>) {
    let (mut words, mut numbers) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, after) = rest.split_at(at);
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let whole = digits(after);
        let fraction = after[whole..].strip_prefix('.').map_or(0, |rest| 1 + digits(rest));
        let (number, behind) = after.split_at(whole + fraction);
        words.push_str(before);
        words.push('N');
        numbers.push(number.parse().unwrap());
        rest = behind;
    }
    words.push_str(rest);
    (words, numbers)
}

/// Whether two numbers may stand for each other: times of day always, else to within a fifth, which
/// is what a few digits more or less change in the size of a key.
fn is_near(told: f64, seen: f64) -> bool {
    let is_time = |number: f64| number > 1e9;
    (is_time(told) && is_time(seen)) || (told - seen).abs() <= 1.0 + told.abs() / 5.0
}

fn is_so(told: &str, seen: &str) -> bool {
    let ((told, told_numbers), (seen, seen_numbers)) = (taken_apart(told), taken_apart(seen));
    told == seen
        && told_numbers.len() == seen_numbers.len()
        && told_numbers.iter().zip(&seen_numbers).all(|(told, seen)| is_near(*told, *seen))
}

// part of: B3
#[test]
fn every_command_on_the_page_answers_as_it_says() {
    let text = std::fs::read_to_string(page()).unwrap();
    let config = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let redis = redis().unwrap();
    // A busy machine is not a Redis that is away.
    let addr = format!("{}\n  timeout: 5s", redis.addr());
    let config = config.replace("127.0.0.1:6379", &addr);
    let config =
        config.replace("http: 127.0.0.1:8082", "gateway: 127.0.0.1:0\n  http: 127.0.0.1:0");
    let node = Tollgate::start(&config);
    let (http, port) = (node.http.to_string(), redis.addr().port());

    let (mut seen, mut wrong, mut commands) = (String::new(), String::new(), 0);
    for (at, block) in text.split("```console\n").enumerate() {
        let Some((session, prose)) = block.split_once("```").filter(|_| at > 0) else {
            seen.push_str(block);
            continue;
        };
        seen.push_str("```console\n");
        for step in session.split("$ ").skip(1) {
            let (command, told) = step.split_once('\n').unwrap_or((step, ""));
            let answer = run(command, &http, port);
            commands += 1;
            if !is_so(told.trim_end(), &answer) {
                writeln!(wrong, "$ {command}\ntold:\n{}\nseen:\n{answer}\n", told.trim_end())
                    .unwrap();
            }
            let answer = if answer.is_empty() { answer } else { answer + "\n" };
            write!(seen, "$ {command}\n{answer}").unwrap();
        }
        seen.push_str("```");
        seen.push_str(prose);
    }
    if !wrong.is_empty() && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(page(), seen).unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
    assert!(commands > 10, "{commands}");
}

#[test]
fn numbers_may_differ_a_little_and_times_by_any_amount() {
    assert!(is_so("tokens \"14.98\" at 1794787200123", "tokens \"14.9\" at 1794787999999"));
    assert!(is_so("{\"a\":100,\"b\":[1]}", "{\"a\":99,\"b\":[1]}"));
    assert!(is_so("192.168.1.100.", "192.168.1.100."));
    assert!(!is_so("tokens 40", "tokens 60"));
    assert!(!is_so("tokens 40", "token 40"));
    assert!(!is_so("1) 2)", "1)"));
}
