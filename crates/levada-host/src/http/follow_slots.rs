// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connection slots of event followers: a follower gives its command slot back, so that followers never use up the
//! slots of commands.

use crate::util::lock::lock;
use axum::body::{Body, Bytes};
use http_body_util::channel::Channel;
use hyper::body::{Body as Frames, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;

/// The command slot of a connection, which the connection can give back before it ends.
#[derive(Clone)]
pub struct CommandSlot(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl CommandSlot {
    pub fn new(permit: OwnedSemaphorePermit) -> CommandSlot {
        CommandSlot(Arc::new(Mutex::new(Some(permit))))
    }

    pub fn give_back(&self) {
        drop(lock(&self.0).take());
    }
}

/// The body of a follower's response; its slot is freed when the body ends.
struct FollowerBody {
    channel: Channel<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Frames for FollowerBody {
    type Data = Bytes;
    type Error = <Channel<Bytes> as Frames>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.channel).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        self.channel.size_hint()
    }
}

pub fn body(channel: Channel<Bytes>, place: OwnedSemaphorePermit) -> Body {
    Body::new(FollowerBody {
        channel,
        _place: place,
    })
}
