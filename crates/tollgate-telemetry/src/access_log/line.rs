//! A request as a line of the log, in which no client can forge another line.
//!
//! JSON lines are pure ASCII: besides control characters this keeps characters away that turn the
//! writing direction on a terminal. Words of a text line hold visible ASCII alone; a backslash
//! begins an escape, and a lone `-` is nothing.

use std::time::Duration;

use super::Entry;
use crate::timestamp;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// `{"time":"…","client":"…",…}` and a line break.
pub(super) fn push_json(out: &mut Vec<u8>, entry: &Entry<'_>) {
    out.extend_from_slice(b"{\"time\":\"");
    timestamp::push(out, entry.at_micros);
    out.extend_from_slice(b"\",\"client\":\"");
    push_display(out, entry.client);
    out.extend_from_slice(b"\",\"method\":");
    push_json_string(out, entry.method);
    out.extend_from_slice(b",\"path\":");
    push_json_string(out, entry.path);
    out.extend_from_slice(b",\"status\":");
    push_number(out, entry.status.into());
    out.extend_from_slice(b",\"bytes\":");
    push_number(out, entry.bytes);
    out.extend_from_slice(b",\"duration_ms\":");
    push_millis(out, entry.duration);
    for (name, text) in [
        (&b",\"route\":"[..], entry.route),
        (b",\"policy\":", entry.policy),
        (b",\"upstream\":", entry.upstream),
        (b",\"correlation_id\":", Some(entry.correlation_id)),
    ] {
        out.extend_from_slice(name);
        match text {
            Some(text) => push_json_string(out, text),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(b",\"limited\":");
    push_display(out, entry.limited);
    out.extend_from_slice(b",\"dry_run_limited\":");
    push_display(out, entry.dry_run_limited);
    out.extend_from_slice(b"}\n");
}

/// `time client method path status bytes duration`, then named words, and a line break.
pub(super) fn push_text(out: &mut Vec<u8>, entry: &Entry<'_>) {
    timestamp::push(out, entry.at_micros);
    out.push(b' ');
    push_display(out, entry.client);
    for word in [entry.method, entry.path] {
        out.push(b' ');
        push_word(out, word);
    }
    out.push(b' ');
    push_number(out, entry.status.into());
    out.push(b' ');
    push_number(out, entry.bytes);
    out.push(b' ');
    push_millis(out, entry.duration);
    out.extend_from_slice(b"ms");
    for (name, word) in [
        (&b" route="[..], entry.route),
        (b" policy=", entry.policy),
        (b" upstream=", entry.upstream),
        (b" id=", Some(entry.correlation_id)),
    ] {
        out.extend_from_slice(name);
        push_word(out, word.unwrap_or_default());
    }
    out.extend_from_slice(match (entry.limited, entry.dry_run_limited) {
        (true, _) => b" limited\n",
        (false, true) => b" dry_run_limited\n",
        (false, false) => b"\n",
    });
}

fn push_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            ' '..='~' => push_ascii(out, character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(b"\\u");
                    let [high, low] = unit.to_be_bytes();
                    push_hex(out, high);
                    push_hex(out, low);
                }
            }
        }
    }
    out.push(b'"');
}

fn push_word(out: &mut Vec<u8>, text: &str) {
    match text {
        "" => out.push(b'-'),
        "-" => out.extend_from_slice(b"\\x2d"),
        _ => text.bytes().for_each(|byte| match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'!'..=b'~' => out.push(byte),
            _ => {
                out.extend_from_slice(b"\\x");
                push_hex(out, byte);
            }
        }),
    }
}

fn push_ascii(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn push_hex(out: &mut Vec<u8>, byte: u8) {
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Milliseconds with three places.
fn push_millis(out: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    push_number(out, micros / 1_000);
    out.push(b'.');
    for place in [100, 10, 1] {
        out.push(HEX[usize::from((micros / place % 10) as u8)]);
    }
}

fn push_display(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    use std::io::Write;
    // Writing to memory cannot fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn entry() -> Entry<'static> {
        Entry {
            at_micros: 1_234_567_890_123_456,
            client: [203, 0, 113, 7].into(),
            method: "GET",
            path: "/api/orders/17",
            status: 200,
            bytes: 1_024,
            duration: Duration::from_micros(1_042),
            route: Some("/api/orders"),
            policy: Some("orders"),
            limited: false,
            dry_run_limited: false,
            upstream: Some("127.0.0.1:9000"),
            correlation_id: "abc",
        }
    }

    fn refused() -> Entry<'static> {
        let (status, bytes) = (429, 380);
        Entry { status, bytes, limited: true, upstream: None, ..entry() }
    }

    fn json(entry: &Entry<'_>) -> String {
        let mut out = Vec::new();
        push_json(&mut out, entry);
        String::from_utf8(out).unwrap()
    }

    fn text(entry: &Entry<'_>) -> String {
        let mut out = Vec::new();
        push_text(&mut out, entry);
        String::from_utf8(out).unwrap()
    }

    // covers: C15
    #[test]
    fn a_json_line_tells_all() {
        expect![[r#"
            {"time":"2009-02-13T23:31:30.123Z","client":"203.0.113.7","method":"GET","path":"/api/orders/17","status":200,"bytes":1024,"duration_ms":1.042,"route":"/api/orders","policy":"orders","upstream":"127.0.0.1:9000","correlation_id":"abc","limited":false,"dry_run_limited":false}
        "#]].assert_eq(&json(&entry()));
        expect![[r#"
            {"time":"2009-02-13T23:31:30.123Z","client":"203.0.113.7","method":"GET","path":"/api/orders/17","status":429,"bytes":380,"duration_ms":1.042,"route":"/api/orders","policy":"orders","upstream":null,"correlation_id":"abc","limited":true,"dry_run_limited":false}
        "#]].assert_eq(&json(&refused()));
    }

    // covers: C14, C15
    #[test]
    fn a_text_line_tells_all() {
        expect![[r#"
            2009-02-13T23:31:30.123Z 203.0.113.7 GET /api/orders/17 200 1024 1.042ms route=/api/orders policy=orders upstream=127.0.0.1:9000 id=abc
        "#]].assert_eq(&text(&entry()));
        expect![[r#"
            2009-02-13T23:31:30.123Z 203.0.113.7 GET /api/orders/17 429 380 1.042ms route=/api/orders policy=orders upstream=- id=abc limited
        "#]].assert_eq(&text(&refused()));
        let would_be = Entry { dry_run_limited: true, ..entry() };
        assert!(text(&would_be).ends_with(" id=abc dry_run_limited\n"));
    }

    #[test]
    fn what_a_client_sends_cannot_begin_a_line_or_a_word() {
        let path = "/a\r\n2009 b\\\"\u{202e}\u{1b}[31m💥";
        let forged = Entry { path, method: "-", ..entry() };
        let line = text(&forged);
        assert!(
            line.contains(
                r#" \x2d /a\x0d\x0a2009\x20b\\"\xe2\x80\xae\x1b[31m\xf0\x9f\x92\xa5 200 "#
            )
        );
        let line = json(&forged);
        let escaped = r#""path":"/a\u000d\u000a2009 b\\\"\u202e\u001b[31m\ud83d\udca5","#;
        assert!(line.contains(escaped), "{line}");
    }

    proptest! {
        #[test]
        fn any_text_stays_in_its_place(
            method in any::<String>(),
            path in any::<String>(),
            id in any::<String>(),
            duration in any::<Duration>(),
            at_micros in any::<u64>(),
        ) {
            let entry = Entry {
                method: &method, path: &path, correlation_id: &id, duration, at_micros, ..entry()
            };
            let line = json(&entry);
            prop_assert!(line.is_ascii());
            prop_assert_eq!(line.lines().count(), 1);
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&value["method"], &method);
            prop_assert_eq!(&value["path"], &path);
            prop_assert_eq!(&value["correlation_id"], &id);

            let line = text(&entry);
            prop_assert!(line.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(line.split(' ').count(), 11);
        }
    }
}
