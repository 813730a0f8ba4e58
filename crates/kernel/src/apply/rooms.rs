//! Channels, their turns, and the agents that speak in them.

use super::{Folded, carried_out};
use crate::World;
use crate::event::{
    ChannelClosed, ChannelMade, ChannelSaid, Fold, MemberAdded, MemberRemoved, MemberRests, MemberSkipped,
    MessageHeard, MessagesReleased, Posted, ReceiptsMoved, ReplyDecided, ReplyUnderWay, ReplyUnfinished,
    RingChanged, RoomRests, RoomStalls, SeatSessionRenewed, SeatSessionUsed, SeatTaken, TurnHeld, TurnMoved,
    TurnShifted,
};
use crate::rooms::{Channel, Seated};
use crate::world::Metered;
use machines::turn;
use std::sync::Arc;

impl Fold<ChannelMade> for World {
    fn fold(&mut self, e: &ChannelMade) -> Folded {
        self.channels.insert(e.name.clone(), Arc::new(Channel::made(e)));
        Ok(())
    }
}

impl Fold<ChannelClosed> for World {
    fn fold(&mut self, e: &ChannelClosed) -> Folded {
        self.edit_channel(&e.name, |channel| channel.closed = Some(e.at))
    }
}

impl Fold<MemberAdded> for World {
    fn fold(&mut self, e: &MemberAdded) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.member_added(e))
    }
}

impl Fold<MemberRemoved> for World {
    fn fold(&mut self, e: &MemberRemoved) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.member_removed(&e.agent))
    }
}

impl Fold<RingChanged> for World {
    fn fold(&mut self, e: &RingChanged) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.ring_changed(e))
    }
}

impl Fold<TurnMoved> for World {
    fn fold(&mut self, e: &TurnMoved) -> Folded {
        let mut taken = None;
        self.edit_channel(&e.channel, |channel| {
            let place: &mut turn::Turn = channel.places.entry(e.agent.clone()).or_default();
            taken = carried_out(machines::replay(place, &e.input, e.to));
            if let turn::Event::TurnGranted { at, .. } = &e.input {
                channel.granted = *at;
            }
        })?;
        taken.ok_or_else(|| format!("agent `{}` has no row from {} to {} here", e.agent, e.from, e.to))
    }
}

impl Fold<TurnHeld> for World {
    fn fold(&mut self, e: &TurnHeld) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.turn_held(e))
    }
}

impl Fold<TurnShifted> for World {
    fn fold(&mut self, e: &TurnShifted) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.turn_shifted(e))
    }
}

impl Fold<Posted> for World {
    fn fold(&mut self, e: &Posted) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.was_posted(e))
    }
}

impl Fold<MessagesReleased> for World {
    fn fold(&mut self, e: &MessagesReleased) -> Folded {
        self.edit_channel(&e.channel, Channel::released)
    }
}

impl Fold<MessageHeard> for World {
    fn fold(&mut self, e: &MessageHeard) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.message_heard(e))
    }
}

impl Fold<ReceiptsMoved> for World {
    fn fold(&mut self, e: &ReceiptsMoved) -> Folded {
        self.edit_channel(&e.channel, |channel| channel.receipts_moved(e))
    }
}

impl Fold<MemberSkipped> for World {
    fn fold(&mut self, e: &MemberSkipped) -> Folded {
        self.edit_channel(&e.channel, |channel| {
            if e.skipped {
                channel.skipped.insert(e.agent.clone());
            } else {
                channel.skipped.remove(&e.agent);
            }
        })
    }
}

impl Fold<MemberRests> for World {
    fn fold(&mut self, e: &MemberRests) -> Folded {
        self.edit_channel(&e.channel, |channel| {
            channel.resting.insert(e.agent.clone());
        })
    }
}

impl Fold<RoomRests> for World {
    fn fold(&mut self, e: &RoomRests) -> Folded {
        self.edit_channel(&e.channel, |channel| {
            channel.rests = e.rests;
            channel.quiet = imbl::OrdSet::new();
            channel.late = imbl::OrdSet::new();
        })
    }
}

impl Fold<RoomStalls> for World {
    fn fold(&mut self, e: &RoomStalls) -> Folded {
        self.edit_channel(&e.channel, |channel| {
            channel.stalled = true;
            channel.ending = e.ending;
        })
    }
}

impl Fold<ChannelSaid> for World {
    fn fold(&mut self, _: &ChannelSaid) -> Folded {
        // Read where channels and the architect are read; nothing that the kernel decides hangs on them.
        Ok(())
    }
}

impl Fold<SeatTaken> for World {
    fn fold(&mut self, e: &SeatTaken) -> Folded {
        let mut seated = Seated::new(&e.agent, &e.session);
        // What was spent there was spent, whoever sat there.
        if let Some(before) = self.seated(&e.seat) {
            seated.spend = before.spend.clone();
            seated.unfinished = before.unfinished.clone();
        }
        self.seats.insert(e.seat.clone(), Arc::new(seated));
        Ok(())
    }
}

impl Fold<SeatSessionUsed> for World {
    fn fold(&mut self, e: &SeatSessionUsed) -> Folded {
        self.edit_seat(&e.seat, |seated| seated.session_used = true)
    }
}

impl Fold<SeatSessionRenewed> for World {
    fn fold(&mut self, e: &SeatSessionRenewed) -> Folded {
        self.edit_seat(&e.seat, |seated| {
            seated.session = e.session.clone();
            seated.session_used = false;
            seated.retried = e.retried;
        })
    }
}

impl Fold<ReplyUnderWay> for World {
    fn fold(&mut self, e: &ReplyUnderWay) -> Folded {
        self.edit_seat(&e.seat, |seated| {
            // A second try is one of the same reply: the next one may lose its session again.
            seated.retried &= e.effect.is_some();
            seated.reply.clone_from(&e.effect);
            seated.decided = None;
            seated.turns_charged = 0;
            seated.metered = Metered::default();
        })
    }
}

impl Fold<ReplyDecided> for World {
    fn fold(&mut self, e: &ReplyDecided) -> Folded {
        self.edit_seat(&e.seat, |seated| seated.decided = Some(e.request.clone()))
    }
}

impl Fold<ReplyUnfinished> for World {
    fn fold(&mut self, e: &ReplyUnfinished) -> Folded {
        self.edit_seat(&e.seat, |seated| {
            seated.unfinished.insert(e.effect.clone());
        })
    }
}
