//! The state of one key: looking at it, and forgetting it.

use http::StatusCode;

use super::{
    Api,
    output::push_key_state,
    percent::{self, PercentError},
    reply::{Failure, Reply},
};

impl Api {
    pub(super) async fn show_key(&self, policy: &str, key: &str) -> Result<Reply, Failure> {
        let (policy, key) = named(policy, key)?;
        let prepared = self.prepared();
        let Some(found) = prepared.policy(&policy) else {
            return Err(Failure::no_policy(&policy));
        };
        let limits = self.engine.inspect(&policy, key.as_bytes()).await?;
        let mut out = Vec::with_capacity(128 * (1 + limits.len()) + key.len());
        push_key_state(&mut out, found, &key, &limits);
        Ok(Reply::json(out))
    }

    pub(super) async fn forget_key(&self, policy: &str, key: &str) -> Result<Reply, Failure> {
        let (policy, key) = named(policy, key)?;
        self.engine.reset(&policy, key.as_bytes()).await?;
        Ok(Reply::empty())
    }
}

/// What the path names. A bare slash in a key is refused rather than guessed at: proxies on the
/// way may join or drop slashes.
fn named(policy: &str, key: &str) -> Result<(String, String), Failure> {
    if key.contains('/') {
        let detail = "Nothing is served at this path. A slash in a key is written as %2F.";
        return Err(Failure::new(StatusCode::NOT_FOUND, detail));
    }
    Ok((decoded("policy", policy)?, decoded("key", key)?))
}

fn decoded(what: &str, segment: &str) -> Result<String, Failure> {
    percent::decode(segment).map_err(|error| {
        Failure::bad(match error {
            PercentError::Escape => {
                format!("The {what} in the path has a % that no two hexadecimal digits follow.")
            }
            PercentError::NotUtf8 => format!("The {what} in the path is not UTF-8."),
        })
    })
}
