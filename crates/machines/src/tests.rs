//! What holds of all five machines: the script that their tests are written in, the walk over every reachable
//! state, the wire, the pages and the purity of the crate.

mod diff;
mod docs;
mod purity;
mod script;
mod walk;
mod wire;

pub(crate) use script::{Script, effects, play};
