// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The extractor of path parameters; a wrong parameter is answered like any other error.

use crate::model::error::{Kind, Refusal};
use crate::protocol::Failed;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

pub struct At<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<At<T>, Failed> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(At(value)),
            Err(e) => {
                let what = format!("{}: {}", parts.uri.path(), e.body_text());
                Err(Refusal::new(Kind::Wrong, what).into())
            }
        }
    }
}
