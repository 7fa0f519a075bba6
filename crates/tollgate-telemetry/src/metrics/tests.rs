use std::time::Duration;

use expect_test::expect;

use super::*;

fn some_traffic() -> Metrics {
    let metrics = Metrics::new();
    let route = metrics.route("/api/orders");
    (0..10).for_each(|_| route.count(200));
    route.count(429);
    metrics.route("/").count(502);
    let policy = metrics.policy("orders", "/api/orders");
    policy.requests.add(11);
    policy.limited.inc();
    metrics.decision_duration.observe(Duration::from_nanos(300));
    metrics.decision_duration.observe(Duration::from_micros(7));
    metrics.config_reloads.failed.inc();
    metrics.set_version("0.1.0");
    metrics.read_store(|| StoreReadings { keys: 2, bytes: 64, evicted: 1, refused: 0 });
    let shared = metrics.shared_store(["connection", "timeout"]);
    shared.round_trip(Duration::from_micros(200), 3, 2);
    shared.round_trip(Duration::from_micros(100), 1, 1);
    shared.failed("timeout");
    shared.failed("nobody named this");
    metrics.read_shared_store(|| SharedStoreReadings {
        up: true,
        fallback_since: Some(1_794_787_200),
        fallback_decisions: 7,
        slice_decisions: 50,
        denial_cache_hits: 5,
        slices: 2,
        slice_tokens: 11,
        clock_offset_seconds: -0.000_25,
        fleet_nodes: 4,
    });
    metrics
}

/// Without the buckets, of which there are many.
fn page(exposition: Exposition) -> String {
    let page = some_traffic().encode(exposition);
    let lines = page.lines().filter(|line| !line.contains("_bucket"));
    lines.map(|line| format!("{line}\n")).collect()
}

// part of: G1
#[test]
fn the_page_shows_every_metric_by_its_name() {
    expect![[r##"
        # HELP gateway_request_total Requests answered, by status and route.
        # TYPE gateway_request_total counter
        gateway_request_total{status="502",route_path="/"} 1
        gateway_request_total{status="200",route_path="/api/orders"} 10
        gateway_request_total{status="429",route_path="/api/orders"} 1
        # HELP ratelimit_requests_total Requests a limit was asked about.
        # TYPE ratelimit_requests_total counter
        ratelimit_requests_total{tier="orders",endpoint="/api/orders"} 11
        # HELP ratelimit_requests_limited_total Requests refused.
        # TYPE ratelimit_requests_limited_total counter
        ratelimit_requests_limited_total{tier="orders",endpoint="/api/orders"} 1
        # HELP ratelimit_requests_dry_run_limited_total Requests a policy in dry run would have refused.
        # TYPE ratelimit_requests_dry_run_limited_total counter
        ratelimit_requests_dry_run_limited_total{tier="orders",endpoint="/api/orders"} 0
        # HELP ratelimit_decision_duration_seconds Time taken to decide, in seconds.
        # TYPE ratelimit_decision_duration_seconds histogram
        ratelimit_decision_duration_seconds_sum 0.0000073
        ratelimit_decision_duration_seconds_count 2
        # HELP gateway_upstream_duration_seconds Time until the upstream's answer began, in seconds.
        # TYPE gateway_upstream_duration_seconds histogram
        gateway_upstream_duration_seconds_sum 0
        gateway_upstream_duration_seconds_count 0
        # HELP ratelimit_store_keys Keys held in memory.
        # TYPE ratelimit_store_keys gauge
        ratelimit_store_keys 2
        # HELP ratelimit_store_bytes Bytes held in memory for keys.
        # TYPE ratelimit_store_bytes gauge
        ratelimit_store_bytes 64
        # HELP ratelimit_store_evicted_total Keys dropped from memory to make room for others.
        # TYPE ratelimit_store_evicted_total counter
        ratelimit_store_evicted_total 1
        # HELP ratelimit_store_refused_total New keys turned away because the memory for keys was full.
        # TYPE ratelimit_store_refused_total counter
        ratelimit_store_refused_total 0
        # HELP tollgate_store_round_trip_duration_seconds Time until the store answered a call, in seconds.
        # TYPE tollgate_store_round_trip_duration_seconds histogram
        tollgate_store_round_trip_duration_seconds_sum 0.0003
        tollgate_store_round_trip_duration_seconds_count 2
        # HELP tollgate_store_round_trips_total Calls the store answered.
        # TYPE tollgate_store_round_trips_total counter
        tollgate_store_round_trips_total 2
        # HELP tollgate_store_batch_size Requests that shared a call to the store.
        # TYPE tollgate_store_batch_size histogram
        tollgate_store_batch_size_sum 4
        tollgate_store_batch_size_count 2
        # HELP tollgate_store_errors_total Calls that failed, by kind.
        # TYPE tollgate_store_errors_total counter
        tollgate_store_errors_total{kind="connection"} 0
        tollgate_store_errors_total{kind="timeout"} 1
        # HELP tollgate_store_decisions_total Decisions by who made them: the store, a slice taken ahead, a refusal remembered, the fallback.
        # TYPE tollgate_store_decisions_total counter
        tollgate_store_decisions_total{by="store"} 3
        tollgate_store_decisions_total{by="slice"} 50
        tollgate_store_decisions_total{by="denial_cache"} 5
        tollgate_store_decisions_total{by="fallback"} 7
        # HELP tollgate_store_up Whether the store answers.
        # TYPE tollgate_store_up gauge
        tollgate_store_up 1
        # HELP tollgate_store_fallback_active Whether the fallback decides.
        # TYPE tollgate_store_fallback_active gauge
        tollgate_store_fallback_active 1
        # HELP tollgate_store_fallback_since_timestamp_seconds Since when the fallback decides, in Unix seconds; 0 while it does not.
        # TYPE tollgate_store_fallback_since_timestamp_seconds gauge
        tollgate_store_fallback_since_timestamp_seconds 1794787200
        # HELP tollgate_store_slices Keys of which this node holds a slice taken ahead.
        # TYPE tollgate_store_slices gauge
        tollgate_store_slices 2
        # HELP tollgate_store_slice_tokens How much this node holds in slices, all keys together.
        # TYPE tollgate_store_slice_tokens gauge
        tollgate_store_slice_tokens 11
        # HELP tollgate_store_clock_offset_seconds The store's clock less this node's, in seconds.
        # TYPE tollgate_store_clock_offset_seconds gauge
        tollgate_store_clock_offset_seconds -0.00025
        # HELP tollgate_store_fleet_nodes Live nodes that share the store, this one included.
        # TYPE tollgate_store_fleet_nodes gauge
        tollgate_store_fleet_nodes 4
        # HELP tollgate_config_reloads_total Configurations read again, by result.
        # TYPE tollgate_config_reloads_total counter
        tollgate_config_reloads_total{result="ok"} 0
        tollgate_config_reloads_total{result="failed"} 1
        # HELP tollgate_access_log_dropped_total Lines of the access log dropped because its queue was full.
        # TYPE tollgate_access_log_dropped_total counter
        tollgate_access_log_dropped_total 0
        # HELP tollgate_build_info The version that is running.
        # TYPE tollgate_build_info gauge
        tollgate_build_info{version="0.1.0"} 1
    "##]]
    .assert_eq(&page(Exposition::Text));
}

// part of: G1
#[test]
fn openmetrics_has_the_same_samples() {
    let samples = |page: String| -> Vec<String> {
        page.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let open_metrics = page(Exposition::OpenMetrics);
    assert_eq!(samples(open_metrics.clone()), samples(page(Exposition::Text)));
    assert!(open_metrics.starts_with("# HELP gateway_request Requests"));
    assert!(open_metrics.contains("\n# TYPE gateway_request counter\n"));
    assert!(open_metrics.contains("\n# TYPE tollgate_build info\n"));
    assert!(open_metrics.ends_with("\n# EOF\n"));
}

#[test]
fn buckets_add_up() {
    let page = some_traffic().encode(Exposition::Text);
    let prefix = "ratelimit_decision_duration_seconds_bucket";
    let buckets: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    assert_eq!(buckets.len(), 24);
    assert_eq!(buckets[0], r#"{le="0.00000025"} 0"#);
    assert_eq!(buckets[1], r#"{le="0.0000005"} 1"#);
    assert_eq!(buckets[5], r#"{le="0.00001"} 2"#);
    assert_eq!(buckets[23], r#"{le="+Inf"} 2"#);
}

// part of: G1
#[test]
fn sizes_of_calls_add_up() {
    let page = some_traffic().encode(Exposition::Text);
    let prefix = "tollgate_store_batch_size_bucket";
    let buckets: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    assert_eq!(buckets.len(), 9);
    assert_eq!(buckets[..3], [r#"{le="1.0"} 1"#, r#"{le="2.0"} 1"#, r#"{le="4.0"} 2"#]);
    assert_eq!(buckets[8], r#"{le="+Inf"} 2"#);
}

// part of: G1
#[test]
fn a_reload_goes_on_counting_where_it_was() {
    let metrics = Metrics::new();
    let before = metrics.route("/api/orders");
    before.count(200);
    let after = metrics.route("/api/orders");
    after.count(200);
    drop((before, after));
    let page = metrics.encode(Exposition::Text);
    assert!(page.contains(r#"gateway_request_total{status="200",route_path="/api/orders"} 2"#));
}

#[test]
fn what_is_not_there_is_not_shown() {
    let page = Metrics::new().encode(Exposition::Text);
    assert!(!page.contains("ratelimit_store"));
    assert!(!page.contains("tollgate_store"));
    assert!(!page.contains("tollgate_build_info"));
    assert!(!page.contains("status="));
}
