//! What the service manager is told, by a datagram to the socket that it named in `NOTIFY_SOCKET`.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// It listens, and whoever waited for it can go on.
pub const READY: &str = "READY=1";
/// It is ending.
pub const STOPPING: &str = "STOPPING=1";

/// Nobody is told where nobody asked; nothing else depends on it.
pub fn tell(state: &str) {
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) {
        let _ = send(name.as_bytes(), state);
    }
}

fn send(name: &[u8], state: &str) -> io::Result<()> {
    let address = match name.strip_prefix(b"@") {
        // In the kernel's own namespace, with no file.
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::path::Path::new(std::ffi::OsStr::from_bytes(name)))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_without_a_file_is_reached_too() {
        let name = format!("adj-notify-{}", std::process::id());
        let socket = SocketAddr::from_abstract_name(&name).and_then(|name| UnixDatagram::bind_addr(&name));
        let socket = socket.unwrap();
        send(format!("@{name}").as_bytes(), READY).unwrap();
        let mut heard = [0; 64];
        let length = socket.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], READY.as_bytes());
    }
}
