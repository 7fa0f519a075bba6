use std::time::Duration;

use expect_test::{Expect, expect};
use tollgate_core::{Time, Wait};

use super::*;

const AT: Time = Time::from_micros(1_700_000_000_250_000);

const EVERYTHING: Settings = Settings { reset: Reset::Delta, ietf: true, retry_after: true };

fn bucket() -> Limit {
    Limit::token_bucket(Rate::per(10, Unit::Second), 15).unwrap()
}

fn allowed(remaining: u64, reset_after: Duration) -> Decision {
    Decision {
        allowed: true,
        limit: 15,
        remaining,
        retry_after: Wait::ZERO,
        reset_after,
        wait: Duration::ZERO,
        at: AT,
        shown: 0,
    }
}

fn refused(retry_after: Wait) -> Decision {
    let reset_after = Duration::from_millis(1_500);
    Decision { allowed: false, retry_after, ..allowed(0, reset_after) }
}

fn write(settings: Settings, decision: Decision, mut headers: HeaderMap) -> HeaderMap {
    LimitHeaders::new("orders", &bucket(), settings).write(&decision, &mut headers);
    headers
}

fn show(headers: &HeaderMap) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap())).collect()
}

#[track_caller]
fn check(settings: Settings, decision: Decision, expected: Expect) {
    expected.assert_eq(&show(&write(settings, decision, HeaderMap::new())));
}

// covers: C4
#[test]
fn a_success_tells_limit_remaining_and_reset() {
    check(
        Settings::default(),
        allowed(14, Duration::from_millis(100)),
        expect![[r#"
            x-ratelimit-limit: 10
            x-ratelimit-remaining: 14
            x-ratelimit-reset: 1700000001
        "#]],
    );
}

// covers: C4
#[test]
fn a_refusal_also_tells_when_to_come_back_and_is_not_stored() {
    check(
        Settings::default(),
        refused(Wait::For(Duration::from_millis(2_001))),
        expect![[r#"
            x-ratelimit-limit: 10
            x-ratelimit-remaining: 0
            x-ratelimit-reset: 1700000002
            cache-control: no-store
            retry-after: 3
            access-control-expose-headers: x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after, x-correlation-id
        "#]],
    );
}

// covers: C4
#[test]
fn every_optional_header_can_be_switched_on() {
    check(
        EVERYTHING,
        refused(Wait::For(Duration::from_micros(1))),
        expect![[r#"
            x-ratelimit-limit: 10
            x-ratelimit-remaining: 0
            x-ratelimit-reset: 2
            ratelimit-policy: "orders";q=10;w=1
            ratelimit: "orders";r=0;t=1
            cache-control: no-store
            retry-after: 1
            x-ratelimit-retry-after: 1
            access-control-expose-headers: x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after, x-correlation-id, x-ratelimit-retry-after, ratelimit-policy, ratelimit
        "#]],
    );
}

// covers: C4
#[test]
fn the_ietf_fields_of_a_success_tell_when_the_limit_is_full_again() {
    check(
        EVERYTHING,
        allowed(3, Duration::from_millis(1_200)),
        expect![[r#"
            x-ratelimit-limit: 10
            x-ratelimit-remaining: 3
            x-ratelimit-reset: 2
            ratelimit-policy: "orders";q=10;w=1
            ratelimit: "orders";r=3;t=2
        "#]],
    );
}

// covers: A9
#[test]
fn what_can_never_pass_is_not_told_to_come_back() {
    let headers = write(EVERYTHING, refused(Wait::Never), HeaderMap::new());
    assert!(!headers.contains_key(header::RETRY_AFTER));
    assert!(!headers.contains_key(RETRY_AFTER));
    assert_eq!(headers[IETF], r#""orders";r=0;t=2"#);
    assert_eq!(headers[header::CACHE_CONTROL], "no-store");
}

// covers: A13, C4
#[test]
fn retry_after_is_rounded_up_and_at_least_one() {
    for (micros, expected) in [(0, "1"), (1, "1"), (1_000_000, "1"), (1_000_001, "2")] {
        let wait = Wait::For(Duration::from_micros(micros));
        let headers = write(Settings::default(), refused(wait), HeaderMap::new());
        assert_eq!(headers[header::RETRY_AFTER], expected);
    }
}

#[test]
fn the_reset_is_rounded_up_over_the_sum_not_over_its_parts() {
    // 0.25 s and 0.75 s make one second; rounding each would make two.
    let headers =
        write(Settings::default(), allowed(1, Duration::from_millis(750)), HeaderMap::new());
    assert_eq!(headers[RESET], "1700000001");
}

#[test]
fn a_reset_beyond_all_time_stays_a_number() {
    let headers = write(Settings::default(), allowed(1, Duration::MAX), HeaderMap::new());
    assert_eq!(headers[RESET], u64::MAX.div_ceil(1_000_000).to_string());
}

// covers: C4
#[test]
fn what_the_upstream_says_of_its_own_limits_is_replaced() {
    let mut upstream = HeaderMap::new();
    for name in [LIMIT, REMAINING, RESET, IETF, IETF_POLICY] {
        upstream.append(&name, HeaderValue::from_static("1"));
        upstream.append(&name, HeaderValue::from_static("2"));
    }
    upstream.insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
    let headers = write(EVERYTHING, allowed(14, Duration::ZERO), upstream);
    expect![[r#"
        x-ratelimit-limit: 10
        x-ratelimit-remaining: 14
        x-ratelimit-reset: 0
        ratelimit: "orders";r=14;t=0
        ratelimit-policy: "orders";q=10;w=1
        retry-after: 7
    "#]]
    .assert_eq(&show(&headers));
}

// covers: C4
#[test]
fn lines_say_the_same_as_the_map() {
    let decisions = [
        allowed(14, Duration::from_millis(100)),
        refused(Wait::For(Duration::from_millis(2_001))),
        refused(Wait::Never),
    ];
    for (settings, decision) in
        [Settings::default(), EVERYTHING].into_iter().flat_map(|s| decisions.map(|d| (s, d)))
    {
        let mut lines = Vec::new();
        let plan = LimitHeaders::new("orders", &bucket(), settings);
        plan.push_lines(&decision, false, &mut lines);
        let map = show(&write(settings, decision, HeaderMap::new()));
        let lines = String::from_utf8(lines).unwrap();
        assert!(lines.lines().all(|line| line.starts_with(|first: char| first.is_uppercase())));
        assert_eq!(lines.to_lowercase(), map.replace('\n', "\r\n"));
    }
}

// covers: C4
#[test]
fn lines_open_an_answer_that_another_origin_may_read() {
    let mut lines = Vec::new();
    let plan = LimitHeaders::new("orders", &bucket(), Settings::default());
    plan.push_lines(&allowed(14, Duration::from_millis(100)), true, &mut lines);
    expect![[r#"
        X-RateLimit-Limit: 10
        X-RateLimit-Remaining: 14
        X-RateLimit-Reset: 1700000001
        Access-Control-Expose-Headers: x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after, x-correlation-id
    "#]]
    .assert_eq(&String::from_utf8(lines).unwrap().replace("\r\n", "\n"));
}

#[test]
fn every_header_of_a_success_replaces_the_upstreams() {
    for settings in [Settings::default(), EVERYTHING] {
        let plan = LimitHeaders::new("orders", &bucket(), settings);
        for name in write(settings, allowed(1, Duration::ZERO), HeaderMap::new()).keys() {
            assert!(plan.replaces(name.as_str().as_bytes()));
            assert!(plan.replaces(name.as_str().to_uppercase().as_bytes()));
        }
        for other in ["", "retry-after", "x-ratelimit-limits", "x-ratelimit-limix", "range"] {
            assert!(!plan.replaces(other.as_bytes()), "{other}");
        }
        assert_eq!(plan.replaces(b"RateLimit"), settings.ietf);
    }
}

// covers: C4
#[test]
fn what_the_upstream_exposes_to_scripts_stays_exposed() {
    let mut upstream = HeaderMap::new();
    upstream.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    upstream.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag"));
    let headers = write(Settings::default(), allowed(1, Duration::ZERO), upstream);
    let exposed: Vec<_> = headers.get_all(header::ACCESS_CONTROL_EXPOSE_HEADERS).iter().collect();
    assert_eq!(exposed[0], "etag");
    assert!(exposed[1].to_str().unwrap().starts_with("x-ratelimit-limit, "));
}

// covers: C4
#[test]
fn a_bucket_shows_its_rate_and_a_window_its_count() {
    let bucket = |count, times, unit| {
        shown_limit(&Limit::token_bucket(Rate { count, times, unit }, 15).unwrap())
    };
    assert_eq!(bucket(10, 1, Unit::Second), 10);
    assert_eq!(bucket(20, 2, Unit::Second), 10);
    assert_eq!(bucket(5, 30, Unit::Second), 5);
    assert_eq!(bucket(60, 1, Unit::Minute), 60);
    assert_eq!(bucket(120, 1, Unit::Minute), 120);
    assert_eq!(bucket(1, 1, Unit::Year), 1);
    assert_eq!(bucket(0, 1, Unit::Second), 0);
    let leaky = Limit::leaky_bucket(Rate::per(5, Unit::Minute), 3).unwrap();
    assert_eq!(shown_limit(&leaky), 5);
    let window = Limit::fixed_window(Rate::per(1_000, Unit::Day)).unwrap();
    assert_eq!(shown_limit(&window), 1_000);
    let in_flight = Limit::concurrency(8, Duration::from_secs(30)).unwrap();
    assert_eq!(shown_limit(&in_flight), 8);
}

#[test]
fn the_ietf_policy_gives_quota_and_window() {
    let policy = |id: &str, limit: Limit| {
        let mut headers = HeaderMap::new();
        let plan = LimitHeaders::new(id, &limit, EVERYTHING);
        plan.write(&allowed(1, Duration::ZERO), &mut headers);
        headers[IETF_POLICY].to_str().unwrap().to_owned()
    };
    let rate = Rate { count: 100, times: 2, unit: Unit::Minute };
    assert_eq!(policy("burst", Limit::fixed_window(rate).unwrap()), r#""burst";q=100;w=120"#);
    let in_flight = Limit::concurrency(8, Duration::from_secs(30)).unwrap();
    assert_eq!(policy(r#"a"é"#, in_flight), r#""a\"%C3%A9";q=8;qu="concurrent-requests""#);
}
