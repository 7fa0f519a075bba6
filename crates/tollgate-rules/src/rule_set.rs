//! Which route a request takes.

use http::Method;

use crate::{Policy, Route};

/// Policies and routes, compiled and immutable.
#[derive(Debug)]
pub struct RuleSet {
    policies: Vec<Policy>,
    routes: Vec<Route>,
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
}

impl RuleSet {
    /// All policies; a policy's `index` is its place here.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The policy of this name.
    pub fn policy(&self, id: &str) -> Option<&Policy> {
        self.policies.iter().find(|policy| *policy.id == *id)
    }

    /// The published routes; a route's `index` is its place here.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Finds the route of a request.
    pub fn matches(&self, _method: &Method, _host: Option<&str>, _path: &str) -> RouteMatch<'_> {
        RouteMatch::None
    }
}
