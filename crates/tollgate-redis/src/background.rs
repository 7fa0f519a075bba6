//! The thread that does what nobody waits for: heartbeats, probes, looking for servers, and calls
//! from threads without a runtime.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{base::Base, heartbeat, topology};

/// How often it is looked whether the last calls are done.
const GLANCE: Duration = Duration::from_millis(1);

/// Runs until the store is dropped; then what is still on its way may arrive, and the fleet is told.
pub(crate) async fn run(base: Arc<Base>) {
    tokio::spawn(topology::keep_looking(Arc::clone(&base)));
    tokio::spawn(heartbeat::keep_beating(Arc::clone(&base)));
    base.closing.notified().await;
    let quiet = async {
        while !base.background_lane().is_idle() {
            sleep(GLANCE).await;
        }
    };
    // None takes longer than its time-out.
    let _ = timeout(base.timeout(), quiet).await;
    heartbeat::say_goodbye(&base).await;
    base.end();
}
