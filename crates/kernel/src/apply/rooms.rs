//! Channels, their turns, and the agents that speak in them.

use super::{Folded, carried_out};
use crate::event::{
    ChannelClosed, ChannelMade, ChannelSaid, Fold, MemberAdded, MemberRemoved, MemberRests, MemberSkipped,
    MessageHeard, MessagesReleased, Posted, ReceiptsMoved, ReplyDecided, ReplyUnderWay, ReplyUnfinished,
    RingChanged, RoomRests, RoomStalls, SeatSessionRenewed, SeatSessionUsed, SeatTaken, TurnHeld, TurnMoved,
    TurnShifted,
};
use crate::rooms::{Channel, MESSAGES_KEPT, Message, Seated};
use crate::world::Metered;
use crate::{Millis, World};
use imbl::OrdSet;
use machines::names::AgentName;
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
            channel.quiet = OrdSet::new();
            channel.late = OrdSet::new();
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

impl Channel {
    fn made(e: &ChannelMade) -> Channel {
        Channel { config: e.config.clone(), about: e.about.clone(), ..Channel::default() }
    }

    fn member_added(&mut self, e: &MemberAdded) {
        if !self.members.contains(&e.agent) {
            self.members.push_back(e.agent.clone());
        }
        let place = self.places.entry(e.agent.clone()).or_default();
        place.state = e.from.unwrap_or(place.state);
        self.left.remove(&e.agent);
        self.expected.insert(e.agent.clone());
        if e.times.is_none() {
            self.own_times.remove(&e.agent);
        } else {
            self.own_times.insert(e.agent.clone(), e.times);
        }
        self.heard.entry(e.agent.clone()).or_default();
    }

    fn member_removed(&mut self, agent: &AgentName) {
        self.members.retain(|member| member != agent);
        if let Some(place) = self.places.remove(agent) {
            self.left.insert(agent.clone(), place.state);
        }
        self.own_times.remove(agent);
        self.heard.remove(agent);
        for set in [&mut self.expected, &mut self.resting, &mut self.skipped] {
            set.remove(agent);
        }
    }

    fn ring_changed(&mut self, e: &RingChanged) {
        // The cursor stays where it is when the one that it stands at leaves.
        if self.last.as_ref() == Some(&e.agent)
            && let Some(place) = self.ring.iter().position(|agent| *agent == e.agent)
        {
            self.last = place.checked_sub(1).and_then(|before| self.ring.get(before).cloned());
        }
        self.ring.retain(|agent| *agent != e.agent);
        self.quiet.remove(&e.agent);
        self.late.remove(&e.agent);
        if e.joined {
            self.ring.push_back(e.agent.clone());
            self.expected.remove(&e.agent);
            self.resting.remove(&e.agent);
            // Whoever is new has something to say, or may have.
            self.quiet = OrdSet::new();
            self.rests = false;
        }
    }

    fn turn_held(&mut self, e: &TurnHeld) {
        match &e.agent {
            Some(agent) => {
                self.posted = false;
                self.stalled = false;
                self.ending = false;
                self.last = Some(agent.clone());
                self.skipped.remove(agent);
            }
            None if e.late => self.late.extend(self.current.clone()),
            None if !self.posted => self.quiet.extend(self.current.clone()),
            None => {}
        }
        self.current.clone_from(&e.agent);
    }

    fn was_posted(&mut self, e: &Posted) {
        self.said = e.number;
        self.quiet = OrdSet::new();
        self.late = OrdSet::new();
        self.posted |= e.agent.is_some() && e.agent == self.current;
        let message = Message {
            number: e.number,
            at: e.at,
            by: e.by.clone(),
            agent: e.agent.clone(),
            text: e.text.clone(),
            held: e.held,
            to: e.to.clone(),
        };
        self.messages.push_back(Arc::new(message));
        while self.messages.len() > MESSAGES_KEPT {
            self.messages.pop_front();
        }
    }

    fn released(&mut self) {
        for message in self.messages.iter_mut().filter(|message| message.held) {
            Arc::make_mut(message).held = false;
        }
    }

    fn message_heard(&mut self, e: &MessageHeard) {
        self.heard.entry(e.agent.clone()).or_default().early.insert(e.number);
    }

    fn receipts_moved(&mut self, e: &ReceiptsMoved) {
        let heard = self.heard.entry(e.agent.clone()).or_default();
        heard.delivered = heard.delivered.max(e.delivered.unwrap_or(0));
        heard.consumed = heard.consumed.max(e.consumed.unwrap_or(0));
        let kept = heard.early.iter().filter(|number| **number > heard.delivered);
        heard.early = kept.copied().collect();
    }

    fn turn_shifted(&mut self, e: &TurnShifted) {
        if let Some(place) = self.places.get_mut(&e.agent) {
            let shift = |due: &mut Option<Millis>| *due = due.map(|due| due.saturating_add(e.by));
            shift(&mut place.timeout_at);
            shift(&mut place.wait_until);
        }
    }
}
