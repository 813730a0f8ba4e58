//! A fleet that stands still says why.

use super::Rule;
use super::step::seconds;
use crate::Millis;
use crate::draft::Draft;
use crate::effect::Timer;
use crate::event::StoodStill;
use crate::standstill::{self, Reason};

/// Keeps the timer: it runs from the moment at which the fleet came to stand still, or at which it stood still for something
/// else than it had said, until that is said or the fleet goes on.
pub(super) fn watch_standstill(d: &mut Draft) {
    let runs = d.world.timers.contains_key(&Timer::Standstill);
    // What it stands still for is looked at when it is time to say it: the list is not made for every command until then.
    if runs && d.world.fleet_running && !standstill::is_at_work(&d.world) {
        return;
    }
    if !is_to_be_said(d) {
        if runs {
            d.clear_timer(&Timer::Standstill);
        }
    } else if !runs {
        let due = d.at() + seconds(d.world.config.limits.standstill_seconds);
        d.set_timer(Timer::Standstill, due);
    }
}

fn is_to_be_said(d: &Draft) -> bool {
    let list = standstill::standstill(&d.world, d.at());
    let said = d.world.standstill.as_ref().filter(|said| said.of_this_fleet);
    !list.is_empty() && said.is_none_or(|said| said.reasons != Reason::all_of(&list))
}

/// It is time to say it, if it is still so. `since`: when the timer was set.
pub(super) fn stood_still(d: &mut Draft, since: Option<Millis>) {
    if !is_to_be_said(d) {
        return;
    }
    d.rule(Rule::StoodStill);
    let reasons = Reason::all_of(&standstill::standstill(&d.world, d.at()));
    let again = d.world.standstill.as_ref().is_some_and(|said| said.reasons == reasons);
    let at = d.at();
    d.emit(StoodStill { since: since.unwrap_or(at), at, reasons, again });
}
