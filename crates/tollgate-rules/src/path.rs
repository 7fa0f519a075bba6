//! How a path reads to an upstream, so that two spellings of one path meet the same limits.
//!
//! `/api/./orders`, `/api//orders`, `/api/%6Frders` and `/api/orders;v=1` reach the same
//! handler on most servers, so routes are matched against one normal form: escapes of plain
//! characters decoded, other escapes in upper case, dot segments resolved, slashes merged,
//! `;parameters` dropped. The gateway still forwards the bytes it was sent, but for the few
//! spellings of [`forwarded_path`]. Spellings on which
//! servers disagree (an encoded slash, a backslash, `..;`, a climb above the root) have no
//! normal form at all, and whoever sends them is told that the request is bad.
//!
//! A path that is already normal costs one pass over its bytes and no allocation.

use std::borrow::Cow;

/// The normal form of a request's path (without its query), or `None` where there is none.
///
/// ```
/// # use tollgate_rules::normal_path;
/// assert_eq!(normal_path("/api/./%6Frders").as_deref(), Some("/api/orders"));
/// // One server reads a slash here, another does not: no limit could be sure to hold.
/// assert_eq!(normal_path("/api%2Forders"), None);
/// ```
pub fn normal_path(path: &str) -> Option<Cow<'_, str>> {
    if !path.starts_with('/') {
        return None;
    }
    if is_normal(path.as_bytes()) {
        return Some(Cow::Borrowed(path));
    }
    normalised(path.as_bytes()).map(Cow::Owned)
}

/// The path to send to an upstream: as it came, unless it has dot segments or begins with two
/// slashes; then in its normal form, if it has one.
///
/// Not every server resolves `..` before it looks for a handler, some merge slashes before they
/// resolve and some after, and some take `//name/` for a host. What such a server would serve is
/// not what the limits were looked up for, so it gets to see what we have seen.
///
/// ```
/// # use tollgate_rules::forwarded_path;
/// assert_eq!(forwarded_path("/api//orders;v=1"), "/api//orders;v=1");
/// assert_eq!(forwarded_path("/login/../public"), "/public");
/// ```
pub fn forwarded_path(path: &str) -> Cow<'_, str> {
    if !wanders(path.as_bytes()) {
        return Cow::Borrowed(path);
    }
    normal_path(path).unwrap_or(Cow::Borrowed(path))
}

fn wanders(path: &[u8]) -> bool {
    let mut before = 0;
    path.starts_with(b"//")
        || path.iter().enumerate().any(|(at, &byte)| {
            let begins = std::mem::replace(&mut before, byte) == b'/';
            begins && (byte == b'.' || byte == b'%') && is_dots(&path[at..])
        })
}

/// Whether the segment that begins here is `.` or `..`, escaped or not.
fn is_dots(from: &[u8]) -> bool {
    let end = from.iter().position(|&byte| byte == b'/').unwrap_or(from.len());
    let mut rest = &from[..end];
    let mut dots = 0;
    while let [b'.', after @ ..] | [b'%', b'2', b'e' | b'E', after @ ..] = rest {
        rest = after;
        dots += 1;
    }
    rest.is_empty() && (1..=2).contains(&dots)
}

/// The segments of a normal path; a slash at its end adds none.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// What a byte is to the normal form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Stands for itself.
    Plain,
    Slash,
    Percent,
    /// Begins a parameter.
    Semicolon,
    /// Is written as an escape.
    Escaped,
    /// Servers disagree about it.
    Refused,
}

const fn class(byte: u8) -> Class {
    match byte {
        b'/' => Class::Slash,
        b'%' => Class::Percent,
        b';' => Class::Semicolon,
        b'\\' | 0 => Class::Refused,
        b'?' | b'#' => Class::Escaped,
        0x21..=0x7e => Class::Plain,
        _ => Class::Escaped,
    }
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = class(byte);
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

fn is_normal(path: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        match CLASSES[usize::from(byte)] {
            Class::Plain => at += 1,
            Class::Slash if bends(&path[at + 1..]) => return false,
            Class::Slash => at += 1,
            Class::Percent if stays_escaped(&path[at..]) => at += 3,
            _ => return false,
        }
    }
    true
}

/// Whether what follows a slash is another slash or a dot segment.
fn bends(after: &[u8]) -> bool {
    let after = match after {
        [b'/', ..] => return true,
        [b'.', b'.', after @ ..] | [b'.', after @ ..] => after,
        _ => return false,
    };
    matches!(after, [] | [b'/', ..])
}

/// Whether an escape already is as the normal form writes it.
fn stays_escaped(from: &[u8]) -> bool {
    let [b'%', high, low, ..] = from else { return false };
    let upper = |digit: &u8| digit.is_ascii_digit() || (b'A'..=b'F').contains(digit);
    upper(high) && upper(low) && unescape(*high, *low).is_some_and(is_written_escaped)
}

/// `%`, `;` and what is not plain keep their escape: decoded they would mean something else.
fn is_written_escaped(byte: u8) -> bool {
    matches!(CLASSES[usize::from(byte)], Class::Escaped | Class::Percent | Class::Semicolon)
}

fn unescape(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

fn normalised(path: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(after) = rest.strip_prefix(b"/") {
        let end = after.iter().position(|&byte| byte == b'/').unwrap_or(after.len());
        let (segment, following) = after.split_at(end);
        push_segment(&mut out, segment)?;
        rest = following;
    }
    // A dot segment at the end names a folder, as an empty one does.
    if out.is_empty() || ends_as_folder(path) {
        out.push('/');
    }
    Some(out)
}

fn ends_as_folder(path: &[u8]) -> bool {
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut decoded = String::new();
    decode_segment(&mut decoded, last).is_some() && matches!(&*decoded, "" | "." | "..")
}

/// Appends one segment in normal form; `..` takes the last one away.
fn push_segment(out: &mut String, segment: &[u8]) -> Option<()> {
    let parent = out.len();
    out.push('/');
    let has_parameter = decode_segment(out, segment)?;
    match &out[parent + 1..] {
        // "..;" climbs on some servers and is a name on others.
        "." | ".." if has_parameter => return None,
        "" | "." => out.truncate(parent),
        ".." => {
            out.truncate(parent);
            // Climbing above the root reads differently everywhere.
            let grandparent = out.rfind('/')?;
            out.truncate(grandparent);
        }
        _ => {}
    }
    Some(())
}

/// Decodes one segment; tells whether a parameter was dropped from it.
fn decode_segment(out: &mut String, segment: &[u8]) -> Option<bool> {
    let mut rest = segment;
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = match CLASSES[usize::from(*first)] {
            Class::Semicolon => return check_parameter(rest).map(|()| true),
            Class::Percent => {
                let [high, low, after @ ..] = rest else { return None };
                rest = after;
                unescape(*high, *low)?
            }
            _ => *first,
        };
        push_byte(out, byte)?;
    }
    Some(false)
}

/// A parameter is dropped, but what is refused elsewhere is not to hide in it.
fn check_parameter(parameter: &[u8]) -> Option<()> {
    let mut sink = String::new();
    for part in parameter.split(|&byte| byte == b';') {
        decode_segment(&mut sink, part)?;
    }
    Some(())
}

fn push_byte(out: &mut String, byte: u8) -> Option<()> {
    match CLASSES[usize::from(byte)] {
        // A slash can only have been an escape here.
        Class::Refused | Class::Slash => return None,
        Class::Plain => out.push(byte as char),
        Class::Percent | Class::Semicolon | Class::Escaped => {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(DIGITS[usize::from(byte >> 4)] as char);
            out.push(DIGITS[usize::from(byte & 15)] as char);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str) {
        assert_eq!(normal_path(path).as_deref().unwrap_or("none"), expected, "{path}");
    }

    // covers: C1
    #[test]
    fn spellings_of_one_path_have_one_normal_form() {
        for path in [
            "/api/orders",
            "/api/./orders",
            "/api//orders",
            "//api/orders",
            "/api/%6Frders",
            "/api/%6frders",
            "/api/x/../orders",
            "/api/%2e/orders",
            "/x/%2E%2e/api/orders",
            "/api/orders;v=1",
            "/api;a=b;c/orders",
            "/api/;x/orders",
        ] {
            check(path, "/api/orders");
        }
        check("/a%21b", "/a!b");
        check("/a%20b", "/a%20b");
        check("/a b", "/a%20b");
        check("/é", "/%C3%A9");
        check("/%c3%a9", "/%C3%A9");
        check("/a%253Bb", "/a%253Bb");
        check("/a%3bb", "/a%3Bb");
    }

    #[test]
    fn a_folder_stays_a_folder() {
        check("/", "/");
        check("//", "/");
        check("/.", "/");
        check("/api/", "/api/");
        check("/api/.", "/api/");
        check("/api/x/..", "/api/");
        check("/api/x/%2e%2E", "/api/");
        check("/..a/.b/...", "/..a/.b/...");
    }

    #[test]
    fn spellings_that_servers_read_differently_have_none() {
        for path in [
            "", "*", "api", "/a%2Fb", "/a%2fb", "/a%5Cb", "/a\\b", "/a%00", "/a%", "/a%2", "/a%zz",
            "/a%+1", "/..", "/../a", "/a/../..", "/a/..;/b", "/a/.;x", "/a;%2F..", "/a;b=%zz",
        ] {
            check(path, "none");
        }
    }

    // covers: C1
    #[test]
    fn a_server_sees_no_path_that_it_could_resolve_otherwise() {
        for (path, expected) in [
            ("/api/orders/../../public", "/public"),
            ("/api/orders//..", "/api/"),
            ("/api/%2e%2E/public", "/public"),
            ("/api/.", "/api/"),
            ("/./api", "/api"),
            ("//evil/api", "/evil/api"),
            ("/x/..;/y", "/x/..;/y"),
            ("/api//orders;v=1/%7e", "/api//orders;v=1/%7e"),
            ("/...", "/..."),
            ("/.well-known/x", "/.well-known/x"),
            ("/a./b..", "/a./b.."),
            ("/%2eenv", "/%2eenv"),
            ("/", "/"),
            ("*", "*"),
        ] {
            assert_eq!(forwarded_path(path), expected, "{path}");
        }
    }

    #[test]
    fn a_normal_path_is_not_copied() {
        for path in ["/", "/api/orders/17", "/a%20b/~x;".trim_end_matches(';'), "/api/"] {
            assert!(matches!(normal_path(path), Some(Cow::Borrowed(_))), "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_form_is_its_own_normal_form(path in "/([a-z./;\\\\?]|%[0-9a-fA-F]{2}|\\PC){0,12}") {
            if let Some(normal) = normal_path(&path) {
                let again = normal_path(&normal);
                prop_assert!(matches!(again, Some(Cow::Borrowed(_))), "{path} {normal} {again:?}");
            }
        }

        #[test]
        fn what_is_forwarded_is_read_as_what_was_sent(
            path in "/([a-z./;]|%2e|%2E|%41|//|/\\./|/\\.\\./){0,12}",
        ) {
            let forwarded = forwarded_path(&path);
            prop_assert_eq!(normal_path(&forwarded), normal_path(&path));
            if normal_path(&path).is_some() {
                prop_assert!(!forwarded.starts_with("//"));
                let decoded = forwarded.replace("%2e", ".").replace("%2E", ".");
                prop_assert!(decoded.split('/').all(|segment| segment != "." && segment != ".."));
            }
        }

        #[test]
        fn escaping_any_plain_character_changes_nothing(
            path in "(/[a-z]{1,4}){1,4}", at in 0_usize..20, upper: bool,
        ) {
            let at = at % path.len();
            let byte = path.as_bytes()[at];
            prop_assume!(byte != b'/');
            let escape = if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
            let spelled = format!("{}{escape}{}", &path[..at], &path[at + 1..]);
            let normal = normal_path(&spelled);
            prop_assert_eq!(normal.as_deref(), Some(&*path));
        }

        #[test]
        fn no_text_makes_it_panic(path in "\\PC*|/(%|\\PC|/|\\.|;){0,20}") {
            let _ = normal_path(&path);
        }
    }
}
