//! The servers that tests and benchmarks stand on start from their recipes and answer.

use tollgate_testkit::{
    cpu::{Core, cpu_time},
    http_client::get,
    servers::{Recipe, StartError, envoy, haproxy, nginx},
};

#[test]
fn nginx_answers() {
    let server =
        nginx("server { listen {addr0}; location / { return 200 hello; } }", None).unwrap();
    assert_eq!(get(server.addr(), "/").unwrap().text(), "hello");
    // The master and its worker: only both together are what nginx costs.
    assert!(cpu_time(server.process.id()).unwrap().as_nanos() > 0);
}

#[test]
fn haproxy_answers() {
    let frontend = "frontend all\n    bind {addr0}\n    http-request return status 200\n";
    let server = haproxy(frontend, Some(Core(0))).unwrap();
    assert_eq!(get(server.addr(), "/").unwrap().status, 200);
}

#[test]
fn envoy_answers() {
    let server = envoy(include_str!("envoy.yaml"), None).unwrap();
    assert_eq!(get(server.addr(), "/").unwrap().text(), "hello");
}

#[test]
fn a_server_that_refuses_its_configuration_is_quoted() {
    let error = nginx("no_such_directive;", None).unwrap_err();
    assert!(error.to_string().contains("unknown directive \"no_such_directive\""), "{error}");
}

#[test]
fn a_server_that_is_not_installed_is_named() {
    let recipe = Recipe {
        program: "no-such-server",
        arguments: &[],
        config_name: "config",
        addrs: 1,
        core: None,
    };
    let error = recipe.start("").unwrap_err();
    assert!(matches!(&error, StartError::NotInstalled(name) if name == "no-such-server"));
}
