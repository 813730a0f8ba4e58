//! All that waits for a person or a service.

use super::types::waiting::{Offered, Waiting};
use super::types::{Nothing, Page, Paging};
use super::{Call, Problem, time};

pub fn list(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<Waiting>, Problem> {
    let (world, now) = (call.world(), call.request.at);
    let list = kernel::waiting::waiting(&world, &call.access.host.facts(), now);
    Ok(paging.page_of(list, Waiting::from))
}

impl From<kernel::waiting::Waiting> for Waiting {
    fn from(waiting: kernel::waiting::Waiting) -> Waiting {
        let kernel::waiting::Waiting { kind, about, since, blocks, who, text, options } = waiting;
        let kernel::waiting::About { task, worker, approval, request, service, channel, dependency } = about;
        Waiting {
            severity: kind.severity(),
            kind,
            task: task.map(|id| id.to_string()),
            worker: worker.map(|name| name.to_string()),
            approval: approval.map(|id| id.to_string()),
            request: request.map(|id| id.to_string()),
            service: service.map(|name| name.to_string()),
            channel: channel.map(|name| name.to_string()),
            dependency: dependency.map(|id| id.to_string()),
            since: since.map(time),
            blocks: blocks.iter().map(ToString::to_string).collect(),
            who,
            text,
            options: options.into_iter().map(Offered::from).collect(),
        }
    }
}
