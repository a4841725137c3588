// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Other processes that compute on the same cores, of which a host is told: what they take of each core is seen as long
//! as something of the host runs, and less of that is put there.

use crate::http::body::{Answer, Shared, read};
use crate::model::error::{Kind, Refusal};
use crate::protocol::{Failed, Processes};
use axum::Json;
use axum::extract::{Request, State as Of};
use axum::response::{IntoResponse, Response};

/// To look at each takes some time.
const MOST: usize = 1024;

/// The processes beside the host of which it has been told
#[utoipa::path(get, path = "/beside", responses((status = 200, body = Processes)))]
pub async fn told(Of(served): Shared) -> Json<Processes> {
    let process = served.isolated.others.all().clone();
    Json(Processes { process })
}

/// Tell it which processes compute on the same cores: it puts less where they take more. These and no others from then
/// on; applications of its own, isolated or not, it knows
#[utoipa::path(put, path = "/beside", request_body = Processes, responses((status = 200, body = Processes),
    (status = 400, body = Failed, description = "These are too many, or no processes")))]
pub async fn tell(Of(served): Shared, request: Request) -> Response {
    let asked: Processes = match read(request).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let answer: Answer<Processes> = match asked.process.len() {
        0..=MOST => {
            let mut all = served.isolated.others.all();
            *all = asked.process;
            all.remove(&std::process::id());
            let process = all.clone();
            Ok(Json(Processes { process }))
        }
        many => {
            let what = format!("{many} processes are too many: no more than {MOST} are looked at");
            Err(Refusal::new(Kind::Wrong, what).into())
        }
    };
    answer.into_response()
}
