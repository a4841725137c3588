// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Protocol of the daemon's socket: one line of JSON in each direction, with file descriptors attached
//! (SCM_RIGHTS). So the daemon reads and writes the files that the command was given, whether they are opened for
//! append, pipes or sockets.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::Value;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Maximum number of descriptors with one line.
pub const FILES_MAX: usize = 64;
/// Maximum length of a line: an argument in hex, and more.
const LINE_BYTES_MAX: usize = 64 << 20;

type Space = [MaybeUninit<u8>; rustix::cmsg_space!(ScmRights(FILES_MAX))];

pub fn send(mut stream: &UnixStream, value: &Value, files: &[File]) -> io::Result<()> {
    let line = format!("{value}\n");
    let files: Vec<_> = files.iter().map(File::as_fd).collect();
    let mut space: Space = [MaybeUninit::uninit(); _];
    let mut with = SendAncillaryBuffer::new(&mut space);
    if files.len() > FILES_MAX
        || !files.is_empty() && !with.push(SendAncillaryMessage::ScmRights(&files))
    {
        return Err(io::Error::other(format!("more than {FILES_MAX} streams")));
    }
    let sent = sendmsg(
        stream,
        &[IoSlice::new(line.as_bytes())],
        &mut with,
        SendFlags::NOSIGNAL,
    )?;
    stream.write_all(&line.as_bytes()[sent..])
}

pub fn receive(stream: &UnixStream) -> io::Result<(String, Vec<File>)> {
    let (mut line, mut files) = (Vec::new(), Vec::new());
    let mut part = vec![0; 4096];
    while !line.ends_with(b"\n") && line.len() < LINE_BYTES_MAX {
        let mut space: Space = [MaybeUninit::uninit(); _];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut part)],
            &mut with,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                files.extend(descriptors.map(File::from));
            }
        }
        if got.bytes == 0 {
            break;
        }
        line.extend_from_slice(&part[..got.bytes]);
    }
    let line = String::from_utf8(line).map_err(io::Error::other)?;
    Ok((line, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Read;

    #[test]
    fn long_lines_arrive_with_their_files() {
        let (one, other) = UnixStream::pair().unwrap();
        let value = json!({ "argument": "0a".repeat(300_000) });
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let sent = value.clone();
        let thread = std::thread::spawn(move || send(&one, &sent, &[file]).unwrap());
        let (line, files) = receive(&other).unwrap();
        thread.join().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        assert_eq!(files.len(), 1);
        (&files[0]).write_all(b"x").unwrap();
        drop(files);
        let mut read = String::new();
        { reader }.read_to_string(&mut read).unwrap();
        assert_eq!(read, "x");
        // A closed peer gives an empty line.
        assert_eq!(receive(&other).unwrap().0, "");
    }

    #[test]
    fn no_more_files_are_sent_than_arrive() {
        let (one, _other) = UnixStream::pair().unwrap();
        let null = || File::open("/dev/null").unwrap();
        let many: Vec<File> = (0..=FILES_MAX).map(|_| null()).collect();
        assert!(send(&one, &json!({}), &many).is_err());
    }
}
