//! The page about this API, command by command.

use std::fmt::Write;

use http::{Method, Request};
use http_body_util::Full;

use crate::service::{Service, service_of};

const PAGE: &str = include_str!("../../../../docs/decision-api.md");

/// The lines of all blocks that begin with this fence.
fn blocks(fence: &str) -> impl Iterator<Item = &'static str> {
    PAGE.split("\n```")
        .filter_map(move |block| block.strip_prefix(fence)?.strip_prefix('\n'))
        .flat_map(str::lines)
}

/// What `curl` would send.
fn request(command: &'static str) -> Request<Full<bytes::Bytes>> {
    let mut quoted = command.split('\'');
    let mut words: Vec<&str> = Vec::new();
    while let Some(plain) = quoted.next() {
        words.extend(plain.split(' ').filter(|word| !word.is_empty()));
        words.extend(quoted.next());
    }
    let after = |option| words.iter().position(|word| *word == option).map(|at| words[at + 1]);
    let target = words.iter().find_map(|word| word.strip_prefix("127.0.0.1:8082")).unwrap();
    let body = after("-d");
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder().method(method).uri(target);
    if let Some((name, value)) = after("-H").and_then(|header| header.split_once(": ")) {
        request = request.header(name, value);
    }
    request.body(Full::from(body.unwrap_or_default())).unwrap()
}

async fn transcript(service: &Service) -> String {
    let mut text = String::new();
    for command in blocks("console").filter_map(|line| line.strip_prefix("$ ")) {
        let answer = service.send(request(command)).await;
        writeln!(text, "$ {command}\n{}", answer.body).unwrap();
    }
    text
}

#[tokio::test(start_paused = true)]
async fn every_command_on_the_page_answers_as_it_says() {
    let policies: String = blocks("yaml").flat_map(|line| [line, "\n"]).collect();
    let told: String = blocks("console").flat_map(|line| [line, "\n"]).collect();
    assert_eq!(told.lines().count(), 28);
    // Leases are numbered on from the time the engine began, which is a test's own.
    assert_eq!(told, transcript(&service_of(&policies)).await);
}
