//! What follows after every command: the scheduler. Each part looks at the world and does what is due, in this order.

use super::architect::settle_architect;
use super::budgets::ask_for_money;
use super::claim::{claim, next_claim};
use super::fleet::{change_hands, retire_surplus};
use super::landing::start_landing;
use super::main_tests::ask_main_tests;
use super::rooms::settle_rooms;
use super::standstill::watch_standstill;
use crate::draft::{Draft, Ruled};

pub(crate) fn settle(d: &mut Draft) -> Ruled {
    ask_main_tests(d);
    start_landing(d)?;
    retire_surplus(d)?;
    loop {
        while let Some((worker, task)) = next_claim(d) {
            claim(d, &worker, &task)?;
        }
        // Whoever was made for a task has not claimed it yet.
        if !change_hands(d)? {
            break;
        }
    }
    settle_rooms(d)?;
    settle_architect(d)?;
    ask_for_money(d)?;
    watch_standstill(d);
    Ok(())
}
