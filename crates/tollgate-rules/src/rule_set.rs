//! Which route a request takes, and which policies there are.
//!
//! A route fits when its host, its path and its methods fit; of those that fit the longest path
//! wins, and of two equally long ones the one that names its host. A longer route that does not
//! serve the method leaves the request to a shorter one that does.

use std::collections::HashMap;

use http::Method;

use crate::{Policy, Route, path::normal_path, router::Router};

/// Policies and routes, compiled and immutable.
#[derive(Debug)]
pub struct RuleSet {
    policies: Vec<Policy>,
    policy_places: HashMap<Box<str>, usize>,
    routes: Vec<Route>,
    router: Router,
}

/// What [`RuleSet::matches`] found.
#[derive(Debug)]
pub enum RouteMatch<'a> {
    /// The route to take.
    Found(&'a Route),
    /// Routes serve this path, but not with this method; these would do.
    WrongMethod(Vec<Method>),
    /// No route serves this path.
    None,
    /// The path can be read in more than one way, or in none: the request is bad. See
    /// [`normal_path`].
    BadPath,
}

impl RuleSet {
    /// Compiles policies and routes that were checked before; the places they carry are set
    /// anew.
    pub(crate) fn new(
        mut policies: Vec<Policy>,
        mut routes: Vec<Route>,
        path_case_sensitive: bool,
    ) -> Self {
        for (index, policy) in policies.iter_mut().enumerate() {
            policy.index = index;
        }
        for (index, route) in routes.iter_mut().enumerate() {
            route.index = index;
        }
        let policy_places =
            policies.iter().map(|policy| (policy.id.clone(), policy.index)).collect();
        let router = Router::new(&routes, path_case_sensitive);
        Self { policies, policy_places, routes, router }
    }

    /// All policies; a policy's `index` is its place here.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The policy of this name.
    pub fn policy(&self, id: &str) -> Option<&Policy> {
        self.policy_places.get(id).map(|&place| &self.policies[place])
    }

    /// The published routes; a route's `index` is its place here.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Finds the route of a request by its host (with or without port) and its path (as it was
    /// sent, without the query). Finding one allocates nothing.
    ///
    /// A CORS preflight has a method of its own: ask with the one it announces.
    pub fn matches(&self, method: &Method, host: Option<&str>, path: &str) -> RouteMatch<'_> {
        let Some(path) = normal_path(path) else { return RouteMatch::BadPath };
        match self.router.find(&self.routes, method, host, &path) {
            Some(route) => RouteMatch::Found(&self.routes[route]),
            None => self.methods_for(host, &path),
        }
    }

    fn methods_for(&self, host: Option<&str>, path: &str) -> RouteMatch<'_> {
        let fitting = self.router.all(host, path);
        let mut methods: Vec<Method> =
            fitting.iter().flat_map(|&route| self.routes[route].methods.iter().cloned()).collect();
        if methods.contains(&Method::GET) {
            methods.push(Method::HEAD);
        }
        methods.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        methods.dedup();
        if methods.is_empty() { RouteMatch::None } else { RouteMatch::WrongMethod(methods) }
    }
}

impl Default for RuleSet {
    /// No policy and no route.
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new(), true)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::read;

    /// Reads routes written as `ID-DIGIT [HOST]PATH METHODS`, one a line.
    fn rules(settings: &str, routes: &str) -> RuleSet {
        let mut text = format!("{settings}\nroutes:\n");
        for (index, line) in routes.split('\n').map(str::trim).enumerate() {
            let (place, methods) = line.split_once(' ').unwrap_or((line, ""));
            let (host, path) = place.split_at(place.find('/').unwrap());
            writeln!(text, "  - id: 00000000-0000-0000-0000-{index:012}").unwrap();
            writeln!(text, "    path: {path}\n    upstreams: [builtin:echo]").unwrap();
            writeln!(text, "    methods: [{methods}]").unwrap();
            if !host.is_empty() {
                writeln!(text, "    host: {host}").unwrap();
            }
        }
        read("routes.yaml", &text, &|_| None).unwrap_or_else(|mistakes| panic!("{mistakes}")).rules
    }

    #[track_caller]
    fn check(rules: &RuleSet, request: &str, expected: &str) {
        let (method, place) = request.split_once(' ').unwrap();
        let (host, path) = place.split_at(place.find('/').unwrap());
        let host = Some(host).filter(|host| !host.is_empty());
        let shown = match rules.matches(&method.parse().unwrap(), host, path) {
            RouteMatch::Found(route) => {
                format!("{}{}", route.host.as_deref().unwrap_or_default(), route.path)
            }
            RouteMatch::WrongMethod(methods) => format!("only {methods:?}"),
            RouteMatch::None => "none".to_owned(),
            RouteMatch::BadPath => "bad".to_owned(),
        };
        assert_eq!(shown, expected, "{request}");
    }

    // covers: C1
    #[test]
    fn the_longest_prefix_on_a_segment_boundary_wins() {
        let rules = rules("", "/\n/api\n/api/orders\n/api/orders/archive/");
        check(&rules, "GET /", "/");
        check(&rules, "GET /apix", "/");
        check(&rules, "GET /api", "/api");
        check(&rules, "GET /api/", "/api");
        check(&rules, "GET /api/order", "/api");
        check(&rules, "GET /api/orders", "/api/orders");
        check(&rules, "GET /api/orders/17/lines", "/api/orders");
        check(&rules, "GET /api/orders/archive", "/api/orders/archive");
    }

    // covers: C1
    #[test]
    fn another_spelling_does_not_lead_round_a_stricter_route() {
        let rules = rules("", "/\n/api/orders");
        for path in [
            "/api/./orders",
            "/api//orders",
            "/api/%6Frders",
            "//api/orders",
            "/x/../api/orders",
            "/api/orders;x",
            "/api/%2e/orders/",
            "/%61%70%69/orders",
        ] {
            check(&rules, &format!("GET {path}"), "/api/orders");
        }
        check(&rules, "GET /api%2Forders", "bad");
        check(&rules, "GET /../api/orders", "bad");
    }

    #[test]
    fn letter_case_tells_paths_apart_unless_told_otherwise() {
        check(&rules("", "/\n/api"), "GET /API", "/");
        let insensitive = rules("gateway: {path_case: insensitive}", "/\n/Api");
        check(&insensitive, "GET /API/x", "/Api");
        check(&insensitive, "GET /%41pi", "/Api");
    }

    // covers: C1
    #[test]
    fn a_route_with_methods_serves_only_those() {
        let rules = rules("", "/api GET, POST\n/api/orders PUT\n/api/orders DELETE");
        check(&rules, "POST /api", "/api");
        check(&rules, "PUT /api/orders/1", "/api/orders");
        check(&rules, "GET /api/orders/1", "/api");
        check(&rules, "PATCH /api/orders/1", "only [DELETE, GET, HEAD, POST, PUT]");
        check(&rules, "PUT /api", "only [GET, HEAD, POST]");
        check(&rules, "PUT /other", "none");
    }

    #[test]
    fn head_goes_where_get_goes_unless_it_has_a_route_of_its_own() {
        let rules = rules("", "/\n/api GET\n/own GET\n/own HEAD");
        check(&rules, "HEAD /api", "/api");
        let head = rules.matches(&Method::HEAD, None, "/own");
        assert!(matches!(head, RouteMatch::Found(route) if route.methods == [Method::HEAD]));
    }

    #[test]
    fn of_two_equally_long_routes_the_one_that_names_the_host_wins() {
        let rules = rules("", "/api\nshop.example/api\nshop.example/\n/api/orders\n/get GET");
        check(&rules, "GET shop.example/api/x", "shop.example/api");
        check(&rules, "GET SHOP.example.:8080/api", "shop.example/api");
        check(&rules, "GET other.example/api", "/api");
        check(&rules, "GET /api", "/api");
        check(&rules, "GET shop.example/api/orders", "/api/orders");
        check(&rules, "GET shop.example/", "shop.example/");
        check(&rules, "GET other.example/", "none");
        check(&rules, "PUT shop.example/get", "shop.example/");
    }

    #[test]
    fn a_request_finds_its_way_among_ten_thousand_routes() {
        let lines: Vec<_> = (0..10_000).map(|n| format!("/s{}/r{}/x{n}", n % 7, n % 101)).collect();
        let rules = rules("", &lines.join("\n"));
        assert_eq!(rules.routes().len(), 10_000);
        for n in [0, 1, 5_000, 9_999] {
            let path = format!("/s{}/r{}/x{n}", n % 7, n % 101);
            check(&rules, &format!("GET {path}/below"), &path);
        }
        check(&rules, "GET /s1/r1", "none");
    }
}
