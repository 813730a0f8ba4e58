//! Checks the health of a service.

use std::process::Stdio;
use std::sync::Arc;

use kernel::command::Happened;
use machines::names::ServiceName;

use super::Shared;
use project::settings::{Health, Service};

/// Asks a service how it is, by the command or address that the settings give.
pub async fn ask(shared: &Arc<Shared>, service: &ServiceName) -> Happened {
    let asked = shared.in_force().settings.services.get(service).cloned();
    let healthy = match asked {
        // Nothing to ask with: the next step tells.
        None => return Happened::HealthUnknown,
        Some(Service { health: Health::Tcp { host, port }, timeout }) => {
            let connect = tokio::net::TcpStream::connect((host.as_str(), port));
            matches!(tokio::time::timeout(timeout, connect).await, Ok(Ok(_)))
        }
        Some(Service { health: Health::Command(line), timeout }) => {
            let mut command = tokio::process::Command::new("sh");
            command.arg("-c").arg(line).current_dir(shared.layout.root()).kill_on_drop(true);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let status = tokio::time::timeout(timeout, command.status()).await;
            matches!(status, Ok(Ok(status)) if status.success())
        }
    };
    Happened::Health { healthy }
}
