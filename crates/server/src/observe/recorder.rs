//! The numbers themselves: Prometheus' text form of what was counted in this process.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::table::{Metric, MetricKind, TABLE};

pub struct Numbers {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

/// The value of a label; neither kind is copied.
#[derive(Clone)]
pub enum Word {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl From<&'static str> for Word {
    fn from(word: &'static str) -> Word {
        Word::Fixed(word)
    }
}

impl From<&Arc<str>> for Word {
    fn from(word: &Arc<str>) -> Word {
        Word::Shared(word.clone())
    }
}

impl From<Word> for SharedString {
    fn from(word: Word) -> SharedString {
        match word {
            Word::Fixed(word) => SharedString::const_str(word),
            Word::Shared(word) => SharedString::from_shared(word),
        }
    }
}

const ABOUT: Metadata<'static> = Metadata::new("adj", Level::INFO, None);

impl Numbers {
    pub fn new() -> Numbers {
        let mut builder = PrometheusBuilder::new();
        for metric in TABLE {
            if let MetricKind::Histogram(buckets) = metric.kind {
                let name = Matcher::Full(metric.name.to_owned());
                builder = match builder.set_buckets_for_metric(name, buckets) {
                    Ok(builder) => builder,
                    Err(error) => panic!("{} has its buckets: {error}", metric.name),
                };
            }
        }
        let recorder = builder.build_recorder();
        for metric in TABLE {
            let (name, about) = (KeyName::from_const_str(metric.name), SharedString::const_str(metric.about));
            match metric.kind {
                MetricKind::Counter => recorder.describe_counter(name, None, about),
                MetricKind::Gauge => recorder.describe_gauge(name, None, about),
                MetricKind::Histogram(_) => recorder.describe_histogram(name, None, about),
            }
        }
        Numbers { handle: recorder.handle(), recorder }
    }

    pub fn counter<const N: usize>(&self, metric: &Metric, words: [Word; N]) -> Counter {
        self.recorder.register_counter(&key(metric, words), &ABOUT)
    }

    pub fn gauge<const N: usize>(&self, metric: &Metric, words: [Word; N]) -> Gauge {
        self.recorder.register_gauge(&key(metric, words), &ABOUT)
    }

    pub fn histogram<const N: usize>(&self, metric: &Metric, words: [Word; N]) -> Histogram {
        self.recorder.register_histogram(&key(metric, words), &ABOUT)
    }

    pub fn page(&self) -> String {
        self.handle.render()
    }

    /// Samples wait in memory until they are sorted: also where nobody ever asks for the page.
    pub fn tidy(&self) {
        self.handle.run_upkeep();
    }
}

fn key<const N: usize>(metric: &Metric, words: [Word; N]) -> Key {
    debug_assert_eq!(metric.labels.len(), N, "{} has other labels", metric.name);
    let labels: Vec<Label> =
        metric.labels.iter().zip(words).map(|(name, word)| Label::new(*name, word)).collect();
    Key::from_parts(metric.name, labels)
}
