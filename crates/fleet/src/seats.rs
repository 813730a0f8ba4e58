//! Prepares the clone of an agent that works outside of tasks: in a channel or as architect.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::command::Happened;
use kernel::rooms::Seat;

use super::Shared;
use super::trees::{self, TreeError};
use git::UnderReview;
use project::layout::Layout;

/// The clone of the seat, at main, with the work that is talked about in it.
pub async fn tree(
    shared: &Arc<Shared>,
    seat: &Seat,
    review: Option<UnderReview>,
) -> Result<PathBuf, TreeError> {
    let (layout, repository, name) =
        (shared.layout.clone(), shared.repository.clone(), Layout::seat_name(seat));
    let made = shared.blocking(move || {
        trees::make_folder(&layout, &repository)?;
        repository.seat_tree(&name, review.as_ref()).map_err(TreeError::from)
    });
    made.await
}

/// The architect's clone is made before it takes a request up. Each reply brings it up to date again.
pub async fn prepare(shared: &Arc<Shared>, seat: &Seat) -> Happened {
    let repository = shared.repository.clone();
    let made = match tree(shared, seat, None).await {
        Ok(_) => shared.blocking(move || repository.main_tip()).await.map_err(TreeError::from),
        Err(error) => Err(error),
    };
    match made {
        Ok(tip) => Happened::TreeReady { tip: tip.as_str().into() },
        Err(error) => Happened::TreeFailed { error: error.to_string() },
    }
}
