// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of a host: sends requests over its Unix socket and reads the responses.

pub(crate) mod write_first;

use crate::client::write_first::WriteFirstStream;
use crate::model::error::Kind;
use crate::protocol::{Failed, version};
use crate::util::at_fork::lives_behind;
use crate::util::process::{is_stopped, listener_of};
use http_body_util::{BodyExt, Full, Limited};
pub use hyper::Method;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// A client of the host behind a socket.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    timeout: Duration,
    /// The isolated application that this process belongs to; users do not know its socket.
    application: Option<String>,
}

/// Maximum size of a response, and of a line of a stream, in bytes: far more than any host sends. An untrusted process
/// could send without end.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// Default timeout of a response.
pub const USUAL: Duration = Duration::from_secs(45);

/// An error without a response.
fn failed(kind: Kind, error: String, help: Option<&str>) -> Failed {
    Failed {
        error,
        help: help.map(str::to_string),
        kind: Some(kind),
        unanswered: true,
        ..Failed::default()
    }
}

/// `text` encoded for a path.
pub fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-~".contains(&b);
    text.bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

impl Client {
    pub fn new(socket: &Path) -> Client {
        Client {
            socket: socket.to_path_buf(),
            timeout: USUAL,
            application: None,
        }
    }

    /// For the process of an isolated application: errors name the application instead of the socket.
    pub fn of_application(self, name: &str) -> Client {
        Client {
            application: Some(name.to_string()),
            ..self
        }
    }

    fn host(&self) -> String {
        match &self.application {
            Some(name) => format!("the process of {name}"),
            None => format!("the host at {}", self.socket.display()),
        }
    }

    fn went(&self, e: hyper::Error) -> Failed {
        failed(
            Kind::HostGone,
            format!(
                "{} closed the connection during its reply: {e}",
                self.host()
            ),
            None,
        )
    }

    fn of_version(&self, theirs: &str) -> Failed {
        let ours = version::compatible();
        let what = format!(
            "{} is of Levada {theirs}, and this command of {ours}",
            self.host()
        );
        let help =
            "end that host and start it again with this version, or use a command of its version";
        failed(Kind::Conflict, what, Some(help))
    }

    /// The response is too large.
    fn endless(&self) -> Failed {
        let most = RESPONSE_BYTES_MAX >> 20;
        failed(
            Kind::Internal,
            format!("{} sent a reply of more than {most} MiB", self.host()),
            None,
        )
    }

    /// The whole body of a response.
    async fn whole(&self, body: Incoming) -> Result<Bytes, Failed> {
        match Limited::new(body, RESPONSE_BYTES_MAX).collect().await {
            Ok(all) => Ok(all.to_bytes()),
            Err(e) => Err(match e.downcast::<hyper::Error>() {
                Ok(e) => self.went(*e),
                Err(_) => self.endless(),
            }),
        }
    }

    fn unreachable(&self, e: std::io::Error) -> Failed {
        let (host, shown) = (self.host(), self.socket.display());
        match (e.kind(), &self.application) {
            (ErrorKind::NotFound | ErrorKind::ConnectionRefused, None) => failed(
                Kind::NoHost,
                format!("no host is running at {shown}"),
                Some("start one with levada host, or name its socket with --socket PATH"),
            ),
            (ErrorKind::PermissionDenied, None) => failed(
                Kind::Denied,
                format!("you are not permitted to connect to {host}"),
                Some("only its user may, or the group that it was given with --group"),
            ),
            _ => failed(Kind::NoHost, format!("{host} cannot be reached: {e}"), None),
        }
    }

    /// Sets the timeout of responses.
    pub fn timeout(self, timeout: Duration) -> Client {
        Client { timeout, ..self }
    }

    /// Runs `work` with the timeout.
    async fn timely<T>(&self, work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        let done = tokio::time::timeout(self.timeout, work).await;
        done.unwrap_or_else(|_| {
            // Rounded to milliseconds for the error text.
            let timeout = Duration::from_millis((self.timeout.as_secs_f64() * 1e3).round() as u64);
            let mut what = format!("{} has not answered within {timeout:?}", self.host());
            let mut help =
                "whether it has done what was asked is not known; see levada list".to_string();
            if self.application.is_none()
                && let Some(process) = self.stopped()
            {
                what += &format!(": its process {process} is stopped");
                help = format!("kill -CONT {process} lets it go on, and do what was asked");
            }
            Err(Failed {
                silent: true,
                ..failed(Kind::Timeout, what, Some(&help))
            })
        })
    }

    /// The process that listens, if it is stopped.
    fn stopped(&self) -> Option<u32> {
        listener_of(&self.socket).filter(|process| is_stopped(*process))
    }

    fn block<T>(&self, work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|e| failed(Kind::Limit, format!("cannot wait for a socket: {e}"), None))?
            .block_on(work)
    }

    async fn send(
        &self,
        method: Method,
        address: &str,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, Failed> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|e| self.unreachable(e))?;
        // A forked child of a dead host may still hold the socket, and does not answer.
        if !lives_behind(&stream) {
            return Err(self.unreachable(std::io::ErrorKind::ConnectionRefused.into()));
        }
        self.ask(stream, method, address, body).await
    }

    async fn ask(
        &self,
        stream: UnixStream,
        method: Method,
        address: &str,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, Failed> {
        let broken = |e: hyper::Error| {
            let what = format!("{} does not answer: {e}", self.host());
            failed(Kind::HostGone, what, None)
        };
        let stream = TokioIo::new(WriteFirstStream::new(stream));
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream)
            .await
            .map_err(broken)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(address)
            .header("host", "levada")
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| failed(Kind::Wrong, format!("{address}: {e}"), None))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        // A host without a free slot does not say its version.
        if status != StatusCode::SERVICE_UNAVAILABLE {
            let server = response.headers().get(hyper::header::SERVER);
            let server = server.and_then(|server| server.to_str().ok());
            version::check(server).map_err(|theirs| self.of_version(&theirs))?;
        }
        if status.is_success() {
            return Ok(response);
        }
        let text = self.whole(response.into_body()).await?;
        let mut failed: Failed = serde_json::from_slice(&text).unwrap_or_else(|_| {
            let what = format!("{} replied with status {status} and no body", self.host());
            failed(Kind::of_http_status(status.as_u16()), what, None)
        });
        let kind = failed.kind.unwrap_or(Kind::of_http_status(status.as_u16()));
        failed.kind = Some(kind);
        failed.unanswered = false;
        Err(failed)
    }

    /// Sends a request; returns the response as text.
    pub fn text(&self, method: Method, address: &str, body: &Value) -> Result<String, Failed> {
        self.block(self.timely(async {
            let body = match body {
                Value::Null => Vec::new(),
                body => body.to_string().into_bytes(),
            };
            let response = self.send(method, address, body).await?;
            let all = self.whole(response.into_body()).await?;
            Ok(String::from_utf8_lossy(&all).into_owned())
        }))
    }

    /// Sends a request; returns the decoded response.
    pub fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        address: &str,
        body: &Value,
    ) -> Result<T, Failed> {
        let text = self.text(method, address, body)?;
        serde_json::from_str(&text).map_err(|e| {
            failed(
                Kind::Internal,
                format!("{} sent a reply that cannot be parsed: {e}", self.host()),
                Some("is it of another version? levada list --json shows what it says"),
            )
        })
    }

    pub fn get<T: DeserializeOwned>(&self, address: &str) -> Result<T, Failed> {
        self.call(Method::GET, address, &Value::Null)
    }

    /// Calls `each` with each line of the response as it arrives, until it returns false or the response ends.
    pub fn lines(&self, address: &str, mut each: impl FnMut(&str) -> bool) -> Result<(), Failed> {
        self.block(async {
            let response = self
                .timely(self.send(Method::GET, address, Vec::new()))
                .await?;
            let mut body = response.into_body();
            let mut rest = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|e| self.went(e))?;
                // The rest of the last chunk contains no newline.
                let mut from = rest.len();
                rest.extend_from_slice(frame.data_ref().map_or(&[], |d| d.as_ref()));
                while let Some(at) = rest[from..].iter().position(|b| *b == b'\n') {
                    let line: Vec<u8> = rest.drain(..=from + at).collect();
                    from = 0;
                    let line = String::from_utf8_lossy(&line);
                    let line = line.trim_end();
                    if !line.is_empty() && !each(line) {
                        return Ok(());
                    }
                }
                if rest.len() > RESPONSE_BYTES_MAX {
                    return Err(self.endless());
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    const OK: &str = concat!(
        "HTTP/1.1 200 OK\r\nserver: levada/",
        env!("CARGO_PKG_VERSION"),
        "\r\n"
    );

    /// What a client receives from a host that answers like this, and why it receives no more.
    fn heard_of(says: impl FnOnce(&mut UnixStream) + Send) -> (Vec<String>, String) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
                says(&mut stream);
            });
            let mut heard = Vec::new();
            let done = crate::client::Client::new(&path).lines("/events", |line| {
                heard.push(line.to_string());
                true
            });
            (heard, done.unwrap_err().error)
        })
    }

    /// A stream that breaks off because the host was killed is not complete.
    #[test]
    fn a_connection_that_breaks_is_an_error() {
        let (heard, why) = heard_of(|stream| {
            let head = format!("{OK}transfer-encoding: chunked\r\n\r\n");
            let answer = format!("{head}4\r\none\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        });
        assert_eq!(heard, ["one"]);
        assert!(why.contains("closed the connection"), "{why}");
    }

    /// A host of Levada 0.1 does not say its version.
    #[test]
    fn a_host_of_another_version_is_refused() {
        for (says, version) in [("", "0.1"), ("server: levada/0.9.3\r\n", "0.9.3")] {
            let (heard, why) = heard_of(|stream| {
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
                let answer = format!("{head}{says}\r\none\n");
                stream.write_all(answer.as_bytes()).unwrap();
            });
            assert!(heard.is_empty());
            assert!(
                why.contains(&format!(" is of Levada {version}, and")),
                "{why}"
            );
        }
    }

    /// An untrusted process could send without end.
    #[test]
    fn a_line_without_end_is_an_error() {
        let (heard, why) = heard_of(|stream| {
            let head = format!("{OK}connection: close\r\n\r\none\ntwo\n");
            let mut said = stream.write_all(head.as_bytes());
            while said.is_ok() {
                said = stream.write_all(&[b'x'; 1 << 16]);
            }
        });
        assert_eq!(heard, ["one", "two"]);
        assert!(why.contains("more than 256 MiB"), "{why}");
    }

    /// A host without a free slot answers before it has read the request, and closes the connection even during the
    /// request.
    #[test]
    fn a_client_that_is_turned_away_gets_the_response() {
        let client = crate::client::Client::new(std::path::Path::new("s"));
        let body = r#"{"error": "no place", "help": "later"}"#;
        let head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length";
        let said = format!("{head}: {}\r\n\r\n{body}", body.len());
        // How much of the request it reads before that.
        for taken in [0, 1, 1000] {
            let (ours, mut host) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            host.write_all(said.as_bytes()).unwrap();
            let goes = std::thread::spawn(move || host.read_exact(&mut vec![0; taken]));
            while taken == 0 && !goes.is_finished() {
                std::thread::yield_now();
            }
            let refused = client.block(async {
                let ours = crate::client::UnixStream::from_std(ours).unwrap();
                let (method, long) = (crate::client::Method::POST, vec![b' '; 1 << 20]);
                let asked = client.ask(ours, method, "/applications", long);
                client.timely(asked).await
            });
            let refused = refused.unwrap_err();
            assert_eq!(refused.error, "no place", "{taken}");
            assert_eq!(refused.help.as_deref(), Some("later"));
            goes.join().unwrap().unwrap();
        }
    }

    /// A host that listens and does nothing else, like a stopped one.
    #[test]
    fn a_host_that_says_nothing_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let client =
            crate::client::Client::new(&path).timeout(std::time::Duration::from_millis(50));
        let why = client
            .get::<Vec<String>>("/applications")
            .unwrap_err()
            .error;
        assert!(why.contains("has not answered within 50ms"), "{why}");
        let why = client.lines("/events", |_| true).unwrap_err().error;
        assert!(why.contains("has not answered"), "{why}");
    }

    /// An error is of no use if it names something that the user has not named.
    #[test]
    fn an_isolated_application_is_told_by_its_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let timeout = std::time::Duration::from_millis(50);
        let client = crate::client::Client::new(&path)
            .of_application("radio")
            .timeout(timeout);
        let absent = client.get::<Vec<String>>("/host").unwrap_err();
        let _listener = UnixListener::bind(&path).unwrap();
        let silent = client.get::<Vec<String>>("/host").unwrap_err();
        for (failed, words) in [(absent, "cannot be reached"), (silent, "has not answered")] {
            let said = format!("{failed:?}");
            assert!(failed.error.starts_with("the process of radio "), "{said}");
            assert!(failed.error.contains(words), "{said}");
            assert!(
                !said.contains(path.to_str().unwrap()) && !said.contains("--socket"),
                "{said}"
            );
        }
    }

    #[test]
    fn special_characters_are_encoded() {
        assert_eq!(crate::client::encoded("a-b.c"), "a-b.c");
        assert_eq!(crate::client::encoded("a/b ü?"), "a%2Fb%20%C3%BC%3F");
    }
}
