// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that control a loaded application: pause, resume, move an actor, unload.

use super::format::done;
use super::{CommandResult, application_path, client, client_for_wait, request, timeout_query};
use crate::cli::{AtArgs, MoveArgs, OneArgs, UnloadArgs};
use crate::common::output::grouped;
use levada_host::client::Method;
use levada_host::model::unconsumed;
use levada_host::protocol::{Application, MoveRequest, REQUEST_TIMEOUT_S, Unloaded};
use serde_json::{Value, json};

fn timeout(at: &AtArgs) -> String {
    format!("?timeout={}", at.timeout.unwrap_or(REQUEST_TIMEOUT_S))
}

pub fn unload(args: &UnloadArgs) -> CommandResult {
    let Some(name) = &args.name else {
        return unload_ended(&args.at);
    };
    let how = if args.now {
        timeout(&args.at) + "&now=true"
    } else {
        timeout(&args.at)
    };
    let address = application_path(name, &how);
    request(
        &args.at,
        client_for_wait(&args.at)?,
        Method::DELETE,
        &address,
        &Value::Null,
        unloaded,
    )
}

fn unload_ended(at: &AtArgs) -> CommandResult {
    let words = |all: &Vec<Unloaded>| {
        if all.is_empty() {
            "no application has ended".to_string()
        } else {
            all.iter().map(unloaded).collect::<Vec<_>>().join("\n")
        }
    };
    request(
        at,
        client(at)?,
        Method::DELETE,
        "/applications",
        &Value::Null,
        words,
    )
}

fn unloaded(u: &Unloaded) -> String {
    let done = u.progress.as_ref().map(|p| format!(", {}", done(p)));
    let told = u.last_report_s;
    let told = told.map(|after| format!(" (as it said after {after:.2} s)"));
    let left = unconsumed::text(&u.unconsumed, u.unconsumed_omitted);
    let left = left.map(|text| format!("; {text}"));
    format!(
        "unloaded {}: {} after {:.2} s, {} firings{}{}{}",
        u.name,
        u.outcome,
        u.seconds,
        grouped(u.firings),
        done.unwrap_or_default(),
        told.unwrap_or_default(),
        left.unwrap_or_default()
    )
}

pub fn pause(args: &OneArgs) -> CommandResult {
    let words = |a: &Application| format!("paused {}", a.name);
    request(
        &args.at,
        client_for_wait(&args.at)?,
        Method::POST,
        &application_path(&args.name, &format!("/pause{}", timeout(&args.at))),
        &Value::Null,
        words,
    )
}

pub fn resume(args: &OneArgs) -> CommandResult {
    let words = |a: &Application| format!("resumed {}", a.name);
    request(
        &args.at,
        client_for_wait(&args.at)?,
        Method::POST,
        &application_path(&args.name, &format!("/resume{}", timeout(&args.at))),
        &Value::Null,
        words,
    )
}

pub fn move_actor(args: &MoveArgs) -> CommandResult {
    let body = MoveRequest {
        actor: args.actor.clone(),
        worker: args.worker,
        unpin: args.unpin,
    };
    request(
        &args.at,
        client_for_wait(&args.at)?,
        Method::POST,
        &application_path(&args.name, &format!("/move{}", timeout_query(&args.at))),
        &json!(body),
        |a: &Application| {
            let of = format!("{} of {}", args.actor, a.name);
            match args.worker {
                Some(worker) => format!("{of} goes to worker {worker}, and stays there"),
                None => format!("{of} goes where the mapper puts it"),
            }
        },
    )
}
