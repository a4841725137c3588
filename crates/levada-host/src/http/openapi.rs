// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Responses that the OpenAPI document lists for every operation, so that handlers need not repeat them.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, ResponseBuilder};

/// Of every operation.
const ANY: [(&str, &str); 4] = [
    (
        "405",
        "Another method than those that are told of this path, which Allow names",
    ),
    (
        "500",
        "An error in the host, or an isolated application's process does not answer",
    ),
    (
        "503",
        "There are too many connections; Retry-After says when to try again",
    ),
    ("507", "The system has too little of something for it"),
];
/// Of operations with parameters or a body.
const SAYS: (&str, &str) = ("400", "The address, or the request, is wrong");
/// Of operations with a body.
const BODY: [(&str, &str); 2] = [
    ("408", "The request did not come in time"),
    ("413", "The request is too large"),
];

fn add(operation: &mut Operation, (status, what): (&str, &str)) {
    let failed = Ref::from_schema_name("Failed");
    let content = ContentBuilder::new().schema(Some(failed)).build();
    let response = ResponseBuilder::new()
        .description(what)
        .content("application/json", content);
    let all = &mut operation.responses.responses;
    all.entry(status.to_string())
        .or_insert_with(|| response.build().into());
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.delete,
    ];
    all.into_iter().filter_map(Option::as_mut)
}

pub fn complete(mut document: OpenApi) -> OpenApi {
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        ANY.into_iter().for_each(|one| add(operation, one));
        if operation.parameters.is_some() || operation.request_body.is_some() {
            add(operation, SAYS);
        }
        if operation.request_body.is_some() {
            BODY.into_iter().for_each(|one| add(operation, one));
        }
    }
    for item in document.paths.paths.values_mut() {
        item.head = item.get.as_ref().map(head);
    }
    document
}

/// Every GET also works as HEAD: the same response without its body.
fn head(get: &Operation) -> Operation {
    let mut head = get.clone();
    let says = |text: &String| format!("{text}: the head of the answer alone");
    head.summary = get.summary.as_ref().map(says);
    head.operation_id = get.operation_id.as_ref().map(|id| format!("{id}_head"));
    for response in head.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
    head
}
