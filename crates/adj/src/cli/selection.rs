//! What the person at the live view has selected: a pending item is chosen, shown whole, and answered by a key.
//!
//! What a key does is what a command line would do, and that is what runs: there is no second way to decide anything.

use api::types::waiting::{Offered, Waiting};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fleet::command_line::{is_left_to_say, words};
use kernel::choice::Choice;

/// Letters of an answer; a longer one is for the command line.
const ANSWER_MAX: usize = 2000;
/// Answers that have a key: `1` to `9`.
const KEYS_MAX: usize = 9;

/// What is wanted when a key was pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// As Ctrl-C is.
    Stop,
    /// As Ctrl-Z is.
    Suspend,
    /// A command line, word by word.
    Run(Vec<String>),
    /// Only what is seen has changed.
    Look,
}

#[derive(Debug, Default)]
pub struct Selection {
    /// Which of the things that wait is meant, however the list moves.
    chosen: Option<Waiting>,
    open: bool,
    /// The answer that is being written: which one, and its words so far.
    writing: Option<(Choice, String)>,
}

/// What is shown beside the list.
#[derive(Debug, PartialEq, Eq)]
pub enum SelectionView<'d> {
    /// The list, with the chosen one where there is one.
    List,
    /// The chosen one with its answers.
    Open,
    /// An answer under way.
    Writing(&'d str),
}

impl Selection {
    pub fn shown(&self) -> SelectionView<'_> {
        match &self.writing {
            Some((_, text)) => SelectionView::Writing(text),
            None if self.open => SelectionView::Open,
            None => SelectionView::List,
        }
    }

    /// The place in the list of the one that is chosen.
    pub fn position(&self, list: &[&Waiting]) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        list.iter().position(|item| item.is_about_the_same(chosen))
    }

    /// Closes what was answered elsewhere in the meantime.
    pub fn keep_up(&mut self, list: &[&Waiting]) {
        if self.position(list).is_none() {
            *self = Selection::default();
        }
    }

    /// A key was pressed while these things waited.
    pub fn press(&mut self, key: KeyEvent, list: &[&Waiting]) -> Option<KeyAction> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match (key.code, &mut self.writing) {
                (KeyCode::Char('c'), _) => Some(KeyAction::Stop),
                (KeyCode::Char('z'), _) => Some(KeyAction::Suspend),
                (KeyCode::Char('u'), Some((_, text))) => {
                    text.clear();
                    Some(KeyAction::Look)
                }
                _ => None,
            };
        }
        self.keep_up(list);
        match self.writing.take() {
            Some((choice, text)) => self.write(key.code, choice, text),
            None => self.choose(key.code, list),
        }
    }

    fn choose(&mut self, key: KeyCode, list: &[&Waiting]) -> Option<KeyAction> {
        let position = self.position(list);
        match key {
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Tab if !self.open => {
                self.choose_at(list, position.map_or(0, |position| position + 1))
            }
            KeyCode::Up | KeyCode::Char('k') | KeyCode::BackTab if !self.open => {
                self.choose_at(list, position.map_or(list.len(), |position| position).wrapping_sub(1))
            }
            KeyCode::Enter if !self.open => {
                let item = list.get(position.unwrap_or(0))?;
                self.choose_at(list, position.unwrap_or(0));
                self.open = true;
                // All of it is printed above, where it stays, before anything can be said to it.
                Some(shows(item).map_or(KeyAction::Look, |choice| KeyAction::Run(line(choice, ""))))
            }
            KeyCode::Esc | KeyCode::Char('q') => {
                *self = Selection::default();
                Some(KeyAction::Look)
            }
            KeyCode::Char(digit @ '1'..='9') if self.open => {
                let option = &list.get(position?)?.options.get(digit as usize - '1' as usize)?.choice;
                if words(option).into_iter().any(is_left_to_say) {
                    self.writing = Some((option.clone(), String::new()));
                    return Some(KeyAction::Look);
                }
                Some(KeyAction::Run(line(option, "")))
            }
            _ => None,
        }
    }

    fn choose_at(&mut self, list: &[&Waiting], place: usize) -> Option<KeyAction> {
        let place = if place == usize::MAX { list.len().checked_sub(1)? } else { place % list.len().max(1) };
        let item = list.get(place)?;
        self.chosen = Some((*item).clone());
        Some(KeyAction::Look)
    }

    fn write(&mut self, key: KeyCode, choice: Choice, mut text: String) -> Option<KeyAction> {
        match key {
            KeyCode::Esc => return Some(KeyAction::Look),
            KeyCode::Enter if text.trim().is_empty() => {}
            KeyCode::Enter => return Some(KeyAction::Run(line(&choice, text.trim()))),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(letter) if text.len() < ANSWER_MAX => text.push(letter),
            _ => {}
        }
        self.writing = Some((choice, text));
        Some(KeyAction::Look)
    }
}

/// The answer that shows all of it.
fn shows(item: &Waiting) -> Option<&Choice> {
    item.options.iter().map(|offered| &offered.choice).find(|choice| {
        matches!(
            choice,
            Choice::ShowRequest { .. }
                | Choice::ShowReview { .. }
                | Choice::ExplainTask { .. }
                | Choice::ExplainWorker { .. }
                | Choice::ClearCheckout
                | Choice::CheckMachine
        )
    })
}

/// The keys of something's answers, each with its command and what it does.
pub fn keys(item: &Waiting) -> impl Iterator<Item = (usize, &Offered)> {
    item.options.iter().take(KEYS_MAX).enumerate().map(|(at, offered)| (at + 1, offered))
}

fn line(choice: &Choice, text: &str) -> Vec<String> {
    // With `=`, so that what begins with a dash is no option.
    let mut line: Vec<String> = Vec::new();
    for word in words(choice) {
        match line.last_mut().filter(|last| last.starts_with("--")) {
            Some(option) if is_left_to_say(word) => *option = format!("{option}={text}"),
            _ if is_left_to_say(word) => line.push(text.to_owned()),
            _ => line.push(word.to_owned()),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::waiting::{About, Decider, Kind};
    use machines::names::TaskId;

    fn review(id: &str) -> Waiting {
        let task = TaskId::new(id).unwrap();
        Waiting::from(kernel::waiting::Waiting {
            kind: Kind::Review,
            about: About { task: Some(task.clone()), ..About::default() },
            since: None,
            blocks: Vec::new(),
            who: Decider::Person,
            text: format!("{id} waits for review"),
            options: vec![
                Choice::ShowReview { task: task.clone() },
                Choice::ApproveReview { task: task.clone() },
                Choice::RequestChanges { task },
            ],
        })
    }

    fn press(selection: &mut Selection, list: &[Waiting], keys: &[KeyCode]) -> Option<KeyAction> {
        let list: Vec<&Waiting> = list.iter().collect();
        keys.iter().map(|key| selection.press(KeyEvent::from(*key), &list)).last().flatten()
    }

    fn runs(line: &[&str]) -> Option<KeyAction> {
        Some(KeyAction::Run(line.iter().map(|word| (*word).to_owned()).collect()))
    }

    #[test]
    fn what_waits_is_shown_whole_before_it_can_be_answered() {
        let (mut selection, list) = (Selection::default(), [review("t-1"), review("t-2")]);
        assert_eq!(press(&mut selection, &list, &[KeyCode::Char('2')]), None);
        let opened = press(&mut selection, &list, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(opened, runs(&["adj", "review", "t-2"]));
        let approved = press(&mut selection, &list, &[KeyCode::Char('2')]);
        assert_eq!(approved, runs(&["adj", "review", "t-2", "--approve"]));
    }

    #[test]
    fn an_answer_with_words_is_written_first_and_is_never_an_option() {
        let (mut selection, list) = (Selection::default(), [review("t-1")]);
        press(&mut selection, &list, &[KeyCode::Enter, KeyCode::Char('3')]);
        let typed: Vec<KeyCode> = "--no 1".chars().map(KeyCode::Char).collect();
        press(&mut selection, &list, &typed);
        assert_eq!(selection.shown(), SelectionView::Writing("--no 1"));
        let sent = press(&mut selection, &list, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!(sent, runs(&["adj", "review", "t-1", "--changes=--no"]));
        assert_eq!(selection.shown(), SelectionView::Open);
    }

    #[test]
    fn a_name_that_is_left_to_say_is_asked_for_and_never_taken_as_it_stands() {
        let task = TaskId::new("t-1").unwrap();
        let mut item = review("t-1");
        item.options =
            vec![Choice::ChooseAgent { task: task.clone() }.into(), Choice::AssignTask { task }.into()];
        let (mut selection, list) = (Selection::default(), [item]);
        press(&mut selection, &list, &[KeyCode::Enter]);
        for (key, expected) in [
            ('1', ["adj", "task", "edit", "t-1", "--agent=B"].as_slice()),
            ('2', ["adj", "assign", "B", "t-1"].as_slice()),
        ] {
            press(&mut selection, &list, &[KeyCode::Char(key)]);
            assert_eq!(selection.shown(), SelectionView::Writing(""));
            assert_eq!(press(&mut selection, &list, &[KeyCode::Char('B'), KeyCode::Enter]), runs(expected));
        }
    }

    /// A key that was meant for one thing must not answer another that has come into its place.
    #[test]
    fn what_was_answered_elsewhere_is_closed_with_all_that_was_typed() {
        let (mut selection, list) = (Selection::default(), [review("t-1"), review("t-2")]);
        press(&mut selection, &list, &[KeyCode::Enter]);
        assert_eq!(press(&mut selection, &list[1..], &[KeyCode::Char('2')]), None);
        assert_eq!(selection.shown(), SelectionView::List);
    }

    #[test]
    fn the_list_goes_round_and_nothing_is_chosen_where_nothing_waits() {
        let (mut selection, list) = (Selection::default(), [review("t-1"), review("t-2")]);
        let all: Vec<&Waiting> = list.iter().collect();
        press(&mut selection, &list, &[KeyCode::Up]);
        assert_eq!(selection.position(&all), Some(1));
        press(&mut selection, &list, &[KeyCode::Down]);
        assert_eq!(selection.position(&all), Some(0));
        for key in [KeyCode::Up, KeyCode::Down, KeyCode::Enter] {
            assert_eq!(press(&mut selection, &[], &[key]), None);
        }
    }

    #[test]
    fn ctrl_c_stops_whatever_is_open() {
        let (mut selection, list) = (Selection::default(), [review("t-1")]);
        press(&mut selection, &list, &[KeyCode::Enter, KeyCode::Char('3')]);
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(selection.press(key, &[&list[0]]), Some(KeyAction::Stop));
    }
}
