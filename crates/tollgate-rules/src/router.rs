//! Finding the route of a path, quickly and however many there are.
//!
//! One tree of path segments per host and one for all hosts. A request walks down its own host's
//! tree and the common one, a hash per segment, and stops where no route goes further: the cost
//! depends on the path's depth, not on the number of routes. Nothing is allocated unless host
//! or path are to be compared without letter case and are unusually long.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use http::Method;
use smallvec::SmallVec;

use crate::{Route, host::bare_host, path::segments};

/// Long enough for any host name and most segments.
type Lower = SmallVec<[u8; 64]>;

#[derive(Debug)]
pub(crate) struct Router {
    any_host: Tree,
    hosts: Names<Tree>,
    case_sensitive: bool,
}

impl Router {
    pub(crate) fn new(routes: &[Route], case_sensitive: bool) -> Self {
        let mut router = Self { any_host: Tree::new(), hosts: Names::default(), case_sensitive };
        for route in routes {
            let tree = match &route.host {
                None => &mut router.any_host,
                Some(host) => {
                    router.hosts.entry(lower(host.as_bytes())[..].into()).or_insert_with(Tree::new)
                }
            };
            tree.add(route, case_sensitive);
        }
        router
    }

    /// The place of the route with the longest path that serves the method; of two equally
    /// long the one that names the host.
    pub(crate) fn find(
        &self,
        routes: &[Route],
        method: &Method,
        host: Option<&str>,
        path: &str,
    ) -> Option<usize> {
        let longest = |tree: &Tree| {
            let names = |route: &&usize| routes[**route].names(method);
            let serves = |route: &&usize| routes[**route].serves(method);
            let mut found = None;
            tree.walk(path, self.case_sensitive, |depth, here| {
                if let Some(&route) = here.iter().find(names).or_else(|| here.iter().find(serves)) {
                    found = Some((depth, route));
                }
            });
            found
        };
        let own = self.tree_of(host).and_then(longest);
        let common = longest(&self.any_host);
        match (own, common) {
            (Some((own_depth, own)), Some((depth, _))) if own_depth >= depth => Some(own),
            (own, common) => common.or(own).map(|(_, route)| route),
        }
    }

    /// The places of all routes whose host and path fit, whatever the method.
    pub(crate) fn all(&self, host: Option<&str>, path: &str) -> Vec<usize> {
        let mut all = Vec::new();
        for tree in self.tree_of(host).into_iter().chain([&self.any_host]) {
            tree.walk(path, self.case_sensitive, |_, here| all.extend_from_slice(here));
        }
        all
    }

    fn tree_of(&self, host: Option<&str>) -> Option<&Tree> {
        if self.hosts.is_empty() {
            return None;
        }
        self.hosts.get(&lower(bare_host(host?).as_bytes())[..])
    }
}

fn lower(text: &[u8]) -> Lower {
    text.iter().map(u8::to_ascii_lowercase).collect()
}

/// A tree of path segments; the first node is the root.
#[derive(Debug)]
struct Tree {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    children: Names<usize>,
    /// Routes whose path ends here, told apart by their methods.
    routes: Vec<usize>,
}

impl Tree {
    fn new() -> Self {
        Self { nodes: vec![Node::default()] }
    }

    fn add(&mut self, route: &Route, case_sensitive: bool) {
        let mut at = 0;
        for segment in segments(&route.path) {
            let segment = if case_sensitive {
                segment.as_bytes().into()
            } else {
                Box::from(&lower(segment.as_bytes())[..])
            };
            let next = self.nodes.len();
            at = *self.nodes[at].children.entry(segment).or_insert(next);
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        self.nodes[at].routes.push(route.index);
    }

    /// Calls `visit` with the routes of every prefix of `path`, shortest first.
    fn walk(&self, path: &str, case_sensitive: bool, mut visit: impl FnMut(usize, &[usize])) {
        let mut node = &self.nodes[0];
        visit(0, &node.routes);
        for (depth, segment) in (1..).zip(segments(path)) {
            let next = if case_sensitive {
                node.children.get(segment.as_bytes())
            } else {
                node.children.get(&lower(segment.as_bytes())[..])
            };
            let Some(&next) = next else { return };
            node = &self.nodes[next];
            visit(depth, &node.routes);
        }
    }
}

/// A table by host or segment.
type Names<T> = HashMap<Box<[u8]>, T, BuildHasherDefault<Folded>>;

/// Folds eight bytes at a time into one word. Clients cannot flood such a table: all that stands
/// in it comes from the configuration, and a look-up adds nothing.
#[derive(Debug, Default)]
struct Folded(u64);

impl Folded {
    fn fold(&mut self, word: u64) {
        // An odd constant with its bits well spread: 2^64 divided by the golden ratio.
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
        self.0 = u64::try_from(low ^ high).unwrap_or_default();
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.fold(chunk.try_into().map_or(0, u64::from_le_bytes));
        }
        let rest = chunks.remainder().iter().rev();
        self.fold(rest.fold(0, |word, &byte| word << 8 | u64::from(byte)));
    }

    fn write_usize(&mut self, length: usize) {
        self.fold(length as u64);
    }
}
