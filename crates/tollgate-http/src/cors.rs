//! What a browser needs so that a page's script can see it was limited.
//!
//! A script may read an answer from another origin only if the answer allows it, and of the
//! headers only those it names. The upstream does that for its own answers; an answer of ours
//! never reached the upstream, so we must, or the script sees a bare "network error" in place
//! of a 429. Any origin may read our errors: they tell about the limit and nothing else.

use http::{HeaderMap, HeaderValue, Method, header};

/// Whether this is a browser asking for permission before the real request.
/// Such a request is not counted: the page did not choose to send it.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && headers.contains_key(header::ORIGIN)
}

/// Lets the script that sent `request` read an answer that we, not the upstream, give.
pub fn let_scripts_read(request: &HeaderMap, answer: &mut HeaderMap) {
    let Some(origin) = request.get(header::ORIGIN) else { return };
    // The origin itself, not `*`: a request with cookies may not be answered with `*`.
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    answer.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    answer.append(header::VARY, HeaderValue::from_static("origin"));
}

/// The same as header lines, for the script of this `origin`.
pub fn push_lines(origin: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"Access-Control-Allow-Origin: ");
    out.extend_from_slice(origin);
    out.extend_from_slice(b"\r\nAccess-Control-Allow-Credentials: true\r\nVary: Origin\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers<const N: usize>(pairs: [(&'static str, &'static str); N]) -> HeaderMap {
        let pairs = pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        HeaderMap::from_iter(pairs)
    }

    // covers: C4
    #[test]
    fn only_a_browsers_question_is_a_preflight() {
        let asking =
            headers([("origin", "https://a.example"), ("access-control-request-method", "PUT")]);
        assert!(is_preflight(&Method::OPTIONS, &asking));
        assert!(!is_preflight(&Method::GET, &asking));
        assert!(!is_preflight(&Method::OPTIONS, &headers([("origin", "https://a.example")])));
        assert!(!is_preflight(&Method::OPTIONS, &HeaderMap::new()));
    }

    // covers: C4
    #[test]
    fn the_origin_that_asked_may_read_the_answer() {
        let mut answer = HeaderMap::new();
        let_scripts_read(&headers([("origin", "https://a.example")]), &mut answer);
        let expected = headers([
            ("access-control-allow-origin", "https://a.example"),
            ("access-control-allow-credentials", "true"),
            ("vary", "origin"),
        ]);
        assert_eq!(answer, expected);
    }

    #[test]
    fn lines_say_the_same() {
        let mut out = Vec::new();
        push_lines(b"https://a.example", &mut out);
        let expected = "Access-Control-Allow-Origin: https://a.example\r\n\
                        Access-Control-Allow-Credentials: true\r\nVary: Origin\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn without_an_origin_nothing_is_added() {
        let mut answer = HeaderMap::new();
        let_scripts_read(&HeaderMap::new(), &mut answer);
        assert!(answer.is_empty());
    }
}
