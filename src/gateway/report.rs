//! A judgement as data, the same on every front.

use serde_json::{Map, Value, json};

use crate::gateway::Judged;
use crate::verdict::{Decision, Finding, Stage};

impl Judged {
    /// Each stage with its own decision, and every finding with the stage it comes from.
    pub fn report(&self) -> Map<String, Value> {
        let decision = self.verdict.decision;
        let stages: Map<String, Value> =
            self.verdict.stages.iter().map(|s| (s.stage.as_str().to_owned(), Value::from(s.decision.word()))).collect();
        let mut report = Map::new();
        report.insert("tool".to_owned(), self.tool.as_str().into());
        report.insert("decision".to_owned(), decision.word().into());
        if let Decision::Ask(level) = decision {
            report.insert("level".to_owned(), level.number().into());
        }
        report.insert("stages".to_owned(), Value::Object(stages));
        let findings = self.verdict.findings().map(|(stage, finding)| told(stage, finding)).collect();
        report.insert("findings".to_owned(), Value::Array(findings));
        report
    }

    /// The finding that decided: the first of the gravest.
    pub fn reason(&self) -> Option<&Finding> {
        let gravest = self.verdict.findings().map(|(_, finding)| finding.severity).max()?;
        self.verdict.findings().map(|(_, finding)| finding).find(|finding| finding.severity == gravest)
    }
}

fn told(stage: Option<Stage>, finding: &Finding) -> Value {
    let mut value = json!({
        "stage": stage.map(Stage::as_str),
        "id": finding.id,
        "severity": finding.severity,
        "message": finding.message,
    });
    if let Some(map) = value.as_object_mut() {
        if let Some(safer) = &finding.safer {
            map.insert("safer".to_owned(), safer.as_str().into());
        }
        if let Some(span) = &finding.span {
            map.insert("span".to_owned(), json!([span.start, span.end]));
        }
    }
    value
}
