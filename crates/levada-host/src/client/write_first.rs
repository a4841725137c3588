// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection that sends its request before it reports a failed write.
//!
//! A host without a free connection slot answers 503 at once and closes the connection, possibly before the request
//! has been written. Without this wrapper the failed write would hide the response that can still be read.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub struct WriteFirstStream<S> {
    stream: S,
    asked: bool,
    listens: Option<Waker>,
}

impl<S> WriteFirstStream<S> {
    pub fn new(stream: S) -> WriteFirstStream<S> {
        WriteFirstStream {
            stream,
            asked: false,
            listens: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteFirstStream<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteFirstStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let written = match Pin::new(&mut self.stream).poll_write(context, bytes) {
            // The reason may have arrived before.
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
