// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who follows events stays for long, and has a place of its own kind: followers, however many, leave the
//! places of commands to commands.

use crate::util::lock::lock;
use axum::body::{Body, Bytes};
use http_body_util::channel::Channel;
use hyper::body::{Body as Frames, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;

/// The place of a connection among those of commands, which it can give back before it ends.
#[derive(Clone)]
pub struct Place(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Place {
    pub fn new(permit: OwnedSemaphorePermit) -> Place {
        Place(Arc::new(Mutex::new(Some(permit))))
    }

    pub fn give_back(&self) {
        drop(lock(&self.0).take());
    }
}

/// What a follower is sent, with its place, which is free when nothing is sent any more.
struct Followed {
    channel: Channel<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Frames for Followed {
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
    Body::new(Followed {
        channel,
        _place: place,
    })
}
