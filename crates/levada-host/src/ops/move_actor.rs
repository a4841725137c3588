// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moving an actor to a worker by hand.

use crate::model::error::{Kind, Refusal};
use crate::ops::restore::wait_loaded;
use crate::ops::state::ServerState;
use crate::protocol::{Application, Failed, MoveRequest, REQUEST_TIMEOUT_S};
use std::time::Duration;

/// Pins the actor to a worker, or unpins it.
pub(crate) fn move_by_name(
    served: &ServerState,
    name: &str,
    request: &MoveRequest,
    timeout: Option<Duration>,
) -> Result<Application, Failed> {
    if request.worker.is_some() == request.unpin {
        let what = "a move needs either a worker, or unpin";
        return Err(Refusal::new(Kind::Wrong, what).into());
    }
    let waits = timeout.unwrap_or(Duration::from_secs_f64(REQUEST_TIMEOUT_S));
    let left = wait_loaded(served, name, waits)?;
    if let Some(isolated) = served.isolated.find(name) {
        // The child process does not know why it must not use that core.
        let closed = |worker| served.host.check_not_reserved(worker, &request.actor);
        request.worker.map_or(Ok(()), closed)?;
        return isolated.move_actor(request, timeout.map(|_| left));
    }
    let host = &served.host;
    host.move_actor(name, &request.actor, request.worker)?;
    Ok(Application::from(&host.find(name)?))
}
