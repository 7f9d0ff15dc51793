//! Writes every decision as one JSON object per line, in the order of the log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tollgate_replay::{DecisionRecord, LogCheck};
use tollgate_server::decision_json;

use super::arguments::Replay;
use super::plan::ReplayPlan;

/// The file of --decisions.
#[derive(Debug)]
pub(super) struct Decisions {
    file: Option<(PathBuf, BufWriter<File>)>,
    /// The names of the candidates, if there are several.
    names: Vec<String>,
    /// Output that waits for earlier lines, by line and candidate.
    waiting: BTreeMap<(u64, usize), String>,
}

impl Decisions {
    pub(super) fn open(arguments: &Replay, plan: &ReplayPlan) -> Result<Self> {
        let open = |path: &PathBuf| {
            let file = File::create(path);
            let file = file.with_context(|| format!("--decisions {}", path.display()))?;
            Ok::<_, anyhow::Error>((path.clone(), BufWriter::new(file)))
        };
        let names = match &*plan.candidates {
            [_] => Vec::new(),
            several => several.iter().map(|candidate| candidate.name.clone()).collect(),
        };
        let file = arguments.decisions.as_ref().map(open).transpose()?;
        Ok(Decisions { file, names, waiting: BTreeMap::new() })
    }

    /// Writes a decision once all earlier lines are complete.
    pub(super) fn write(&mut self, record: &DecisionRecord<'_>) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let text = self.text(record);
        self.waiting.insert((record.number, record.candidate), text);
        self.write_before(record.complete_before)
    }

    fn write_before(&mut self, number: u64) -> io::Result<()> {
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 >= number {
                break;
            }
            file.write_all(first.remove().as_bytes())?;
        }
        Ok(())
    }

    /// Writes the remaining decisions.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.write_before(u64::MAX)
            .and_then(|()| match &mut self.file {
                Some((_, file)) => file.flush(),
                None => Ok(()),
            })
            .with_context(|| self.path().display().to_string())
    }

    fn path(&self) -> &Path {
        self.file.as_ref().map_or(Path::new(""), |file| &file.0)
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
            .filter_map(|((check, policy), decision)| {
                let json = decision_json(policy.as_ref()?, decision);
                Some(check_fields(check) + json.strip_prefix('{')?)
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
