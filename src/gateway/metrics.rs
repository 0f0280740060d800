//! Numbers for a monitoring system, in the text form of Prometheus: how calls were answered and how long that took, who
//! waits for people, whether the record is kept.

use jiff::Timestamp;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

use crate::audit::index::{Index, IndexError};
use crate::gateway::record::{RecordError, State};

/// How long decisions took in this process, in seconds.
pub(super) struct Latency(Option<Histogram>);

/// From a tenth of a millisecond to some seconds: a decision takes microseconds, its record a sync of the disk.
const BUCKETS: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

impl Latency {
    pub fn new() -> Self {
        let about = "From a request to its answer with the record on disk, in seconds, of this process.";
        let options = HistogramOpts::new("portcullis_decision_seconds", about).buckets(BUCKETS.to_vec());
        Latency(Histogram::with_opts(options).ok())
    }

    pub fn took(&self, time: std::time::Duration) {
        if let Some(histogram) = &self.0 {
            histogram.observe(time.as_secs_f64());
        }
    }
}

/// Why there are no numbers.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("the numbers cannot be written: {0}")]
    Prometheus(#[from] prometheus::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// The numbers as they are now.
pub(super) fn text(state: &State, latency: &Latency) -> Result<String, MetricsError> {
    let registry = Registry::new();
    if let Some(histogram) = &latency.0 {
        registry.register(Box::new(histogram.clone()))?;
    }
    let index = Index::open(state.path())?;
    counted(
        &registry,
        &index,
        Opts::new("portcullis_calls_total", "Calls on record, by what was answered and by tool."),
        &["answer", "tool"],
        "SELECT answer, tool, count(*) FROM calls GROUP BY answer, tool",
    )?;
    counted(
        &registry,
        &index,
        Opts::new("portcullis_objections_total", "Calls that a stage objected to, by stage and gravity."),
        &["stage", "severity"],
        "SELECT coalesce(stage, 'call'), severity, count(DISTINCT seq) FROM findings WHERE severity <> 'note' GROUP BY 1, 2",
    )?;
    let gauge = |name: &str, about: &str, value: i64| -> Result<(), prometheus::Error> {
        let gauge = IntGauge::new(name, about)?;
        gauge.set(value);
        registry.register(Box::new(gauge))
    };
    let (pending, now) = (state.waiting()?, Timestamp::now());
    let oldest = pending.iter().map(|approval| now.duration_since(approval.created).as_secs()).max().unwrap_or(0);
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    gauge("portcullis_approvals_pending", "Calls that wait for a person.", count(pending.len()))?;
    gauge("portcullis_approvals_oldest_seconds", "How long the oldest of them has waited.", oldest)?;
    gauge("portcullis_grants", "Grants that are in force.", count(state.grants()?.len()))?;
    let withheld: u64 = state.withheld()?.iter().map(|(_, count)| count).sum();
    let about = "Requests of the last hour that no person got to see, because their session asked too often.";
    gauge("portcullis_approvals_withheld", about, i64::try_from(withheld).unwrap_or(i64::MAX))?;
    gauge("portcullis_audit_ready", "Whether calls can be put on record.", i64::from(state.ready().is_ok()))?;
    let lag = i64::try_from(state.unsynced()).unwrap_or(i64::MAX);
    gauge("portcullis_audit_unsynced_records", "Records that are not known to be on disk.", lag)?;
    Ok(TextEncoder::new().encode_to_string(&registry.gather())?)
}

/// A counter whose values a query counts: labels, then the number.
fn counted(
    registry: &Registry,
    index: &Index,
    options: Opts,
    labels: &[&str],
    query: &str,
) -> Result<(), MetricsError> {
    let counter = IntCounterVec::new(options, labels)?;
    for row in index.sql(query)?.rows {
        let Some((number, names)) = row.split_last() else { continue };
        let names: Vec<&str> = names.iter().map(|name| name.as_str().unwrap_or_default()).collect();
        counter.get_metric_with_label_values(&names)?.inc_by(number.as_u64().unwrap_or(0));
    }
    registry.register(Box::new(counter))?;
    Ok(())
}
