//! What a piece of work has while it runs in the writer's transaction.

use super::glob::Patterns;
use super::keys::Keys;
use super::webhook::Delivery;
use crate::stored::Transaction;

pub struct Turn<'a> {
    pub stored: Transaction<'a>,
    pub keys: &'a Keys,
    pub patterns: &'a mut Patterns,
    /// Webhooks to be sent behind the commit.
    pub deliveries: Vec<Delivery>,
    /// So many changes of streams has every subscription heard of.
    pub heard: usize,
}
