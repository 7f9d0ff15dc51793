//! Writes every decision as one JSON object per line, in the order of the log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tollgate_daemon::decision_json;
use tollgate_replay::{DecisionRecord, LogCheck};

use super::plan::ReplayPlan;

/// The file of --decisions.
#[derive(Debug)]
pub(super) struct Decisions {
    path: PathBuf,
    file: BufWriter<File>,
    /// The names of the candidates, if there are several.
    names: Vec<String>,
    /// Output that waits for earlier lines, by line and candidate.
    waiting: BTreeMap<(u64, usize), String>,
}

impl Decisions {
    pub(super) fn open(path: &Path, plan: &ReplayPlan) -> Result<Self> {
        let file = File::create(path);
        let file = file.with_context(|| format!("--decisions {}", path.display()))?;
        let names = match &*plan.candidates {
            [_] => Vec::new(),
            several => several.iter().map(|candidate| candidate.name.clone()).collect(),
        };
        let file = BufWriter::new(file);
        Ok(Decisions { path: path.to_owned(), file, names, waiting: BTreeMap::new() })
    }

    /// Writes a decision once all earlier lines are complete.
    pub(super) fn write(&mut self, record: &DecisionRecord<'_>) -> io::Result<()> {
        let text = self.text(record);
        self.waiting.insert((record.number, record.candidate), text);
        self.write_before(record.complete_before)
    }

    fn write_before(&mut self, number: u64) -> io::Result<()> {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 >= number {
                break;
            }
            self.file.write_all(first.remove().as_bytes())?;
        }
        Ok(())
    }

    /// Writes the remaining decisions.
    pub(super) fn finish(mut self) -> Result<()> {
        let written = self.write_before(u64::MAX).and_then(|()| self.file.flush());
        written.with_context(|| self.path.display().to_string())
    }

    fn text(&self, record: &DecisionRecord<'_>) -> String {
        let mut line = String::from("{");
        if let Some(name) = self.names.get(record.candidate) {
            line += &format!("\"limits\":{},", json!(name));
        }
        line += &format!(
            "\"line\":{},\"verb\":\"{}\",",
            record.number + 1,
            record.request.operation.as_str()
        );
        let answer = match &record.answer {
            Ok(answer) => answer,
            Err(error) => {
                if let [check] = &*record.request.checks {
                    line += &check_fields(check);
                }
                return line + &format!("\"error\":{}}}\n", json!(error));
            }
        };
        let rows = record.request.checks.iter().zip(record.policies).zip(&answer.decisions);
        let rows: Vec<_> = rows
            .map(|((check, policy), decision)| {
                check_fields(check) + &decision_json(policy, decision)[1..]
            })
            .collect();
        match &*rows {
            [only] => line += only,
            several => {
                let rows: Vec<_> = several.iter().map(|row| format!("{{{row}")).collect();
                line +=
                    &format!("\"allowed\":{},\"checks\":[{}]}}", answer.allowed(), rows.join(","));
            }
        }
        line + "\n"
    }
}

/// The key and the cost of a check, each followed by a comma.
fn check_fields(check: &LogCheck) -> String {
    let key = match std::str::from_utf8(&check.key) {
        Ok(key) => format!("\"key\":{}", json!(key)),
        Err(_) => format!("\"key_base64\":\"{}\"", STANDARD.encode(&check.key)),
    };
    format!("{key},\"cost\":{},", check.cost.get())
}
