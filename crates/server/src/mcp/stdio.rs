//! The tools over standard input and output: one JSON message a line, and nothing else.

use std::io::Write;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::AsyncReadExt;

use super::{Backend, Server};
use api::{Exit, Failure};

/// So much is held for a client that is slow to read.
const BUFFER_BYTES: usize = 64 * 1024;

/// Serves until the input ends. What was asked before that is answered first.
pub fn serve(backend: Arc<dyn Backend>, out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ended = runtime.block_on(served(Server::new(backend), out));
    // The thread that reads standard input may still wait for a line that never comes.
    runtime.shutdown_background();
    ended
}

async fn served(server: Server, out: &mut dyn Write) -> Result<(), Failure> {
    // This thread holds standard output, and so writes it: what is to be written comes through a pipe of our own.
    let (theirs, mut ours) = tokio::io::duplex(BUFFER_BYTES);
    let talk = tokio::spawn(async move {
        let running = server.serve((tokio::io::stdin(), theirs)).await?;
        let _ = running.waiting().await;
        Ok::<(), ServerInitializeError>(())
    });
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = ours.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        out.write_all(&buffer[..read])?;
        out.flush()?;
    }
    match talk.await {
        // The input ended before anything was asked.
        Ok(Ok(()) | Err(ServerInitializeError::ConnectionClosed(_))) => Ok(()),
        Ok(Err(error)) => Err(Failure::new(Exit::Usage, format!("this is not a client of MCP: {error}"))
            .hint("an assistant starts `adj mcp` and speaks to it; it is not for people to type into")),
        Err(error) => Err(Failure::new(Exit::Failed, format!("the tools could not be served: {error}"))),
    }
}
