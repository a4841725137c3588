// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message framing on the standard streams: `Content-Length: N`, an empty line, N bytes of JSON.
//!
//! A message with invalid JSON is answered with an error and skipped, as its length is known. After an invalid header
//! the stream cannot be resynchronised, and reading ends.

use crate::common::output::{Failure, failure};
use lsp_server::Message;
use serde_json::Value;
use std::io::{BufRead, Write};
use std::sync::mpsc::SyncSender;

pub enum FrameError {
    Message(String),
    Stream(String),
}

/// Maximum length of a message.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Reads messages until the input ends, or is out of synchronisation.
pub fn read_all(from: &mut impl BufRead, to: &SyncSender<Result<Message, FrameError>>) {
    loop {
        let message = match read(from) {
            Ok(None) => return,
            Ok(Some(message)) => Ok(message),
            Err(bad) => Err(bad),
        };
        let over = matches!(message, Err(FrameError::Stream(_)));
        if to.send(message).is_err() || over {
            return;
        }
    }
}

fn read(from: &mut impl BufRead) -> Result<Option<Message>, FrameError> {
    let stream = |e: std::io::Error| FrameError::Stream(e.to_string());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        // Headers are short; a line without an end must not fill the memory.
        let n = std::io::Read::take(&mut *from, 4096)
            .read_until(b'\n', &mut line)
            .map_err(stream)?;
        if n == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(FrameError::Stream(format!("{line:?} is no header")));
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value
                .trim()
                .parse()
                .ok()
                .filter(|n| *n <= MESSAGE_BYTES_MAX);
        }
    }
    let Some(length) = length else {
        return Err(FrameError::Stream("a message has no Content-Length".into()));
    };
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).map_err(stream)?;
    match serde_json::from_slice(&bytes) {
        Ok(message) => Ok(Some(message)),
        Err(e) => Err(FrameError::Message(e.to_string())),
    }
}

pub fn send(message: Message) -> Result<(), Failure> {
    let mut value = serde_json::to_value(message).map_err(|e| Failure::new(e.to_string()))?;
    value["jsonrpc"] = "2.0".into();
    send_value(&value)
}

pub fn send_value(value: &Value) -> Result<(), Failure> {
    let text = value.to_string();
    let mut out = std::io::stdout().lock();
    let sent =
        write!(out, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| out.flush());
    match sent {
        Ok(()) => Ok(()),
        Err(e) => failure(format!("cannot write to the editor: {e}")),
    }
}
