//! What an operator reads when the store goes and comes back.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tollgate_store::{Condition, Health, OnFailure, Share};
use tollgate_testkit::remote_store::Network;
use tracing_subscriber::fmt::MakeWriter;

use super::node::{HALF, alone, begin, bucket, run};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn down(cause: &str) -> Condition {
    Condition::Down(cause.to_owned())
}

/// What is logged while `test` runs.
fn logged(test: impl Future<Output = ()>, lines: &Lines) {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .finish();
    tracing::subscriber::with_default(subscriber, || run(test));
}

// part of: B6
#[test]
fn one_warning_when_it_goes_silence_and_one_line_when_it_is_back() {
    let lines = Lines::default();
    let seen = lines.clone();
    logged(
        async move {
            let (remote, node, clock) = alone(OnFailure::Local(HALF));
            let health = Health::new();
            let watching = tokio::spawn(node.store.watch(&health, "Redis"));
            let limit = bucket(10, 10);
            tokio::task::yield_now().await;
            assert!(node.take(&limit, "ann", 1).allowed);
            assert_eq!((seen.take(), node.store.stats().since), (vec![], None));

            remote.set(Network::Refused);
            health.set(down("connection refused"));
            tokio::task::yield_now().await;
            assert_eq!(
                seen.take(),
                [
                    "WARN Distributed rate limiting disabled: Redis unavailable (connection refused); \
                 limiting locally at 50 % of policy"
                ]
            );
            assert_eq!(node.store.stats().since, Some(begin()));

            clock.advance(std::time::Duration::from_secs(9));
            for cause in ["timed out after 50 ms", "LOADING", "connection refused"] {
                health.set(down(cause));
                tokio::task::yield_now().await;
                for _ in 0..100 {
                    node.take(&limit, "ann", 1);
                }
            }
            assert_eq!((seen.take(), node.store.stats().since), (vec![], Some(begin())));

            remote.set(Network::AtOnce);
            health.set(Condition::Up);
            tokio::task::yield_now().await;
            assert_eq!(seen.take(), ["INFO Distributed rate limiting restored"]);
            assert_eq!(node.store.stats().since, None);
            assert!(!node.store.stats().is_active());
            watching.abort();
        },
        &lines,
    );
}

// part of: B6, B7
#[test]
fn the_warning_says_what_happens_instead() {
    let texts = [
        (OnFailure::Allow, "letting everything pass"),
        (OnFailure::Deny, "refusing everything"),
        (
            OnFailure::Local(Share::Part { millionths: 125_000 }),
            "limiting locally at 12.5 % of policy",
        ),
        (OnFailure::Local(Share::Fleet(Arc::new(|| 4))), "limiting locally at 1/4 of policy"),
    ];
    for (on_failure, text) in texts {
        let lines = Lines::default();
        let seen = lines.clone();
        logged(
            async move {
                let (_remote, node, _clock) = alone(on_failure);
                let health = Health::new();
                // Away before anybody looked: a node that starts without the store.
                health.set(down("timed out after 50 ms"));
                let watching = tokio::spawn(node.store.watch(&health, "Redis"));
                tokio::task::yield_now().await;
                let expected = format!(
                    "WARN Distributed rate limiting disabled: Redis unavailable (timed out after \
                     50 ms); {text}"
                );
                assert_eq!(seen.take(), [expected]);
                watching.abort();
            },
            &lines,
        );
    }
}
