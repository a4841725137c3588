// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada lsp`: a language server for CAL and XDF on the standard streams.
//!
//! It is thin: its knowledge of a file is the result of `levada check`, with the editor's unsaved texts in place of
//! the files ([`analysis`]). Messages are handled in order of arrival. Changed files are checked when no message is
//! pending, so that fast typing does not cause a check per letter.

mod analysis;
mod rename;
mod text;
mod wire;

use crate::common::output::{Failure, failure};
use crate::common::std_streams;
use analysis::Analysis;
use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument,
    DidSaveTextDocument, Exit, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{
    GotoDefinition, HoverRequest, Initialize, PrepareRenameRequest, References, Rename,
    Request as _, Shutdown,
};
use lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    GotoDefinitionResponse, Hover, HoverContents, HoverProviderCapability, InitializeParams,
    Location, MarkupContent, MarkupKind, OneOf, PrepareRenameResponse, PublishDiagnosticsParams,
    ReferenceParams, RenameOptions, RenameParams, SaveOptions, ServerCapabilities,
    TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, TryRecvError};

pub fn lsp() -> Result<ExitCode, Failure> {
    let (sender, receiver) = mpsc::sync_channel(64);
    // This thread ends with the process, since its input may never end.
    let input =
        std_streams::input().map_err(|e| Failure::new(format!("cannot read the input: {e}")))?;
    std::thread::spawn(move || wire::read_all(&mut input.lock(), &sender));
    let mut server = Server::default();
    loop {
        let next = match receiver.try_recv() {
            Err(TryRecvError::Empty) => {
                server.publish()?;
                receiver.recv().ok()
            }
            other => other.ok(),
        };
        let ended = match next {
            // The editor has gone.
            None => Some(server.state == State::Down),
            Some(Ok(message)) => server.take(message)?,
            Some(Err(wire::FrameError::Message(why))) => {
                server.bad_message(&why)?;
                None
            }
            Some(Err(wire::FrameError::Stream(why))) => {
                return failure(format!(
                    "what comes in is no message of the protocol: {why}"
                ));
            }
        };
        match ended {
            None => {}
            Some(true) => return Ok(ExitCode::SUCCESS),
            Some(false) => return Ok(ExitCode::FAILURE),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Up,
    /// Shut down; waits for the exit notification.
    Down,
}

/// Why a request is answered with an error.
type Refusal = (ErrorCode, String);

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err((ErrorCode::RequestFailed, why.into()))
}

#[derive(Default)]
struct Server {
    state: State,
    world: analysis::World,
    /// Whether anything has changed since the last check.
    dirty: bool,
    /// The files for which diagnostics were published.
    published: BTreeSet<PathBuf>,
}

impl Server {
    /// Handles one message; `Some` if it was the last one, with whether the exit is regular.
    fn take(&mut self, message: Message) -> Result<Option<bool>, Failure> {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                let answer = match self.answer(request) {
                    Ok(result) => Response::new_ok(id, result),
                    Err((code, why)) => Response::new_err(id, code as i32, why),
                };
                wire::send(answer.into())?;
            }
            Message::Notification(note) if note.method == Exit::METHOD => {
                return Ok(Some(self.state == State::Down));
            }
            Message::Notification(note) => self.hear(note),
            // We send no requests, so there are no responses.
            Message::Response(_) => {}
        }
        Ok(None)
    }

    fn bad_message(&mut self, why: &str) -> Result<(), Failure> {
        // The protocol requires the id null if it is unknown; the types have no such id.
        let code = ErrorCode::ParseError as i32;
        wire::send_value(&json!({
            "jsonrpc": "2.0", "id": null, "error": {"code": code, "message": why},
        }))
    }

    fn answer(&mut self, request: Request) -> Result<Value, Refusal> {
        match (self.state, request.method.as_str()) {
            (State::New, Initialize::METHOD) => {
                let params: InitializeParams = params(request.params)?;
                self.state = State::Up;
                self.world.folders = folders(&params);
                let version = env!("CARGO_PKG_VERSION");
                return Ok(json!({
                    "capabilities": capabilities(),
                    "serverInfo": {"name": "levada", "version": version},
                }));
            }
            (State::New, _) => {
                let why = "the first request is `initialize`".into();
                return Err((ErrorCode::ServerNotInitialized, why));
            }
            (State::Up, Shutdown::METHOD) => {
                self.state = State::Down;
                return Ok(Value::Null);
            }
            (State::Down, _) => {
                let why = "the server has been shut down".into();
                return Err((ErrorCode::InvalidRequest, why));
            }
            (State::Up, _) => {}
        }
        match request.method.as_str() {
            HoverRequest::METHOD => self.hover(params(request.params)?),
            GotoDefinition::METHOD => self.definition(params(request.params)?),
            References::METHOD => self.references(params(request.params)?),
            PrepareRenameRequest::METHOD => self.prepare_rename(params(request.params)?),
            Rename::METHOD => self.rename(params(request.params)?),
            other => Err((
                ErrorCode::MethodNotFound,
                format!("there is no method {other}"),
            )),
        }
    }

    /// Handles a notification; unknown ones are ignored.
    fn hear(&mut self, note: Notification) {
        if self.state != State::Up {
            return;
        }
        match note.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Ok(p) = params::<DidOpenTextDocumentParams>(note.params) {
                    self.world.open(&p.text_document.uri, p.text_document.text);
                    self.dirty = true;
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Ok(p) = params::<DidChangeTextDocumentParams>(note.params)
                    && let Some(change) = p.content_changes.into_iter().next_back()
                {
                    self.world.open(&p.text_document.uri, change.text);
                    self.dirty = true;
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Ok(p) = params::<DidCloseTextDocumentParams>(note.params) {
                    self.world.close(&p.text_document.uri);
                    self.dirty = true;
                }
            }
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => {
                self.world.forget();
                self.dirty = true;
            }
            _ => {}
        }
    }

    /// Checks all open files and publishes their diagnostics.
    fn publish(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.dirty) {
            return Ok(());
        }
        let mut found: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
        let open: Vec<PathBuf> = self.world.opened().map(Path::to_owned).collect();
        for path in &open {
            found.entry(path.clone()).or_default();
            let Ok(analysis) = self.world.analyse(path) else {
                continue;
            };
            for (file, diagnostic) in analysis.diagnostics(path, &self.world) {
                // Diagnostics of an open file come from its own check.
                let own = file == *path || !open.contains(&file);
                let list = found.entry(file).or_default();
                if own && !list.contains(&diagnostic) {
                    list.push(diagnostic);
                }
            }
        }
        let before = std::mem::take(&mut self.published);
        for path in before {
            found.entry(path).or_default();
        }
        for (path, diagnostics) in found {
            if !diagnostics.is_empty() {
                self.published.insert(path.clone());
            }
            let Some(uri) = self.world.uri(&path) else {
                continue;
            };
            let params = PublishDiagnosticsParams::new(uri, diagnostics, None);
            let note = Notification::new(PublishDiagnostics::METHOD.into(), params);
            wire::send(note.into())?;
        }
        Ok(())
    }

    /// The analysis of the file of a request, and the offset in it.
    fn at(&mut self, at: &TextDocumentPositionParams) -> Result<(Cursor, u32), Refusal> {
        let uri = &at.text_document.uri;
        let Some(path) = text::path_of(uri) else {
            return refuse(format!("{} is no file", uri.as_str()));
        };
        let analysis = self.world.analyse(&path).or_else(refuse)?;
        let Some(file) = analysis.file(&path) else {
            return refuse(format!("{} cannot be read", path.display()));
        };
        let offset = text::offset(&analysis.text(file), at.position);
        Ok((
            Cursor {
                analysis,
                path,
                file,
            },
            offset,
        ))
    }

    fn hover(&mut self, p: TextDocumentPositionParams) -> Result<Value, Refusal> {
        let (at, offset) = self.at(&p)?;
        let Some((span, value)) = at.analysis.hover(at.file, offset) else {
            return Ok(Value::Null);
        };
        let hover = Hover {
            contents: HoverContents::Markup(MarkupContent {
                kind: MarkupKind::Markdown,
                value,
            }),
            range: Some(text::range(&at.analysis.text(at.file), span)),
        };
        Ok(json!(hover))
    }

    fn definition(&mut self, p: TextDocumentPositionParams) -> Result<Value, Refusal> {
        let (at, offset) = self.at(&p)?;
        let names = at.analysis.index.named(at.file, offset);
        let places = names.iter().map(|n| n.declared);
        let found: Vec<Location> = places
            .filter_map(|span| at.analysis.location(span, &self.world))
            .collect();
        Ok(if found.is_empty() {
            Value::Null
        } else {
            json!(GotoDefinitionResponse::Array(found))
        })
    }

    fn references(&mut self, p: ReferenceParams) -> Result<Value, Refusal> {
        let (at, offset) = self.at(&p.text_document_position)?;
        let mut found = Vec::new();
        for (path, text, spans) in rename::uses(&mut self.world, &at, offset)?.uses {
            let Some(uri) = self.world.uri(&path) else {
                continue;
            };
            let place = |span| Location::new(uri.clone(), text::range(&text, span));
            found.extend(spans.into_iter().map(place));
        }
        Ok(json!(found))
    }

    fn prepare_rename(&mut self, p: TextDocumentPositionParams) -> Result<Value, Refusal> {
        let (at, offset) = self.at(&p)?;
        let span = rename::target(&at, offset)?;
        let range = text::range(&at.analysis.text(at.file), span);
        Ok(json!(PrepareRenameResponse::Range(range)))
    }

    fn rename(&mut self, p: RenameParams) -> Result<Value, Refusal> {
        let (at, offset) = self.at(&p.text_document_position)?;
        let edit = rename::rename(&mut self.world, &at, offset, &p.new_name)?;
        Ok(json!(edit))
    }
}

/// The file of a request.
struct Cursor {
    analysis: std::rc::Rc<Analysis>,
    path: PathBuf,
    file: u32,
}

fn params<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    let bad = |e: serde_json::Error| (ErrorCode::InvalidParams, e.to_string());
    serde_json::from_value(value).map_err(bad)
}

fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in params.workspace_folders.iter().flatten() {
        found.extend(text::path_of(&folder.uri));
    }
    #[allow(deprecated)]
    if let (true, Some(root)) = (found.is_empty(), &params.root_uri) {
        found.extend(text::path_of(root));
    }
    found
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::FULL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(
                    SaveOptions::default(),
                )),
                ..Default::default()
            },
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: Default::default(),
        })),
        ..Default::default()
    }
}
