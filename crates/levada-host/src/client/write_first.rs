// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The connection of a client that asks before it listens. A host that has no place for it says so at once and closes the
//! connection, which may be before the client has asked. HTTP knows no answer without a question, and what cannot be
//! written any more would hide what can still be read.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub struct Asks<S> {
    stream: S,
    asked: bool,
    listens: Option<Waker>,
}

impl<S> Asks<S> {
    pub fn new(stream: S) -> Asks<S> {
        Asks {
            stream,
            asked: false,
            listens: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Asks<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        if !self.asked {
            self.listens = Some(context.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Asks<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let written = match Pin::new(&mut self.stream).poll_write(context, bytes) {
            // Why, it may have said before.
            Poll::Ready(Err(e)) if e.kind() == ErrorKind::BrokenPipe => {
                Poll::Ready(Ok(bytes.len()))
            }
            written => written,
        };
        if written.is_ready() {
            self.asked = true;
            self.listens.take().into_iter().for_each(Waker::wake);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
