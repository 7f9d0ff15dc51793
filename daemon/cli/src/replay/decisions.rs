//! Every decision, as a JSON object a line, in the order of the log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tollgate_replay::{Answered, AskedCheck};
use tollgate_server::decision_json;

use super::arguments::Replay;
use super::asking::Asking;

/// Where decisions are written to.
#[derive(Debug)]
pub(super) struct Decisions {
    file: Option<(PathBuf, BufWriter<File>)>,
    /// The names of the alternatives, where there are several.
    names: Vec<String>,
    /// The lines that an earlier one is still missing before, by their number.
    waiting: BTreeMap<(u64, usize), String>,
}

impl Decisions {
    pub(super) fn open(arguments: &Replay, asking: &Asking) -> Result<Self> {
        let open = |path: &PathBuf| {
            let file = File::create(path);
            let file = file.with_context(|| format!("--decisions {}", path.display()))?;
            Ok::<_, anyhow::Error>((path.clone(), BufWriter::new(file)))
        };
        let names = match &*asking.alternatives {
            [_] => Vec::new(),
            several => several.iter().map(|several| several.name.clone()).collect(),
        };
        let file = arguments.decisions.as_ref().map(open).transpose()?;
        Ok(Decisions { file, names, waiting: BTreeMap::new() })
    }

    /// Writes a decision, once no earlier line can come any more.
    pub(super) fn tell(&mut self, decided: &Answered<'_>) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let text = self.text(decided);
        self.waiting.insert((decided.number, decided.alternative), text);
        self.write_before(decided.settled)
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

    /// Writes what is left.
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

    fn text(&self, decided: &Answered<'_>) -> String {
        let mut line = String::from("{");
        if let Some(name) = self.names.get(decided.alternative) {
            line += &format!("\"limits\":{},", json!(name));
        }
        line += &format!(
            "\"line\":{},\"verb\":\"{}\",",
            decided.number + 1,
            decided.asked.verb.as_str()
        );
        let answer = match &decided.answer {
            Ok(answer) => answer,
            Err(error) => {
                if let [check] = &*decided.asked.checks {
                    line += &asked(check);
                }
                return line + &format!("\"error\":{}}}\n", json!(error));
            }
        };
        let rows = decided.asked.checks.iter().zip(decided.policies).zip(&answer.decisions);
        let rows: Vec<_> = rows
            .filter_map(|((check, policy), decision)| {
                let said = decision_json(policy.as_ref()?, decision);
                Some(asked(check) + said.strip_prefix('{')?)
            })
            .collect();
        match &*rows {
            [only] => line += only,
            several => {
                let rows: Vec<_> = several.iter().map(|several| format!("{{{several}")).collect();
                line +=
                    &format!("\"allowed\":{},\"checks\":[{}]}}", answer.allowed(), rows.join(","));
            }
        }
        line + "\n"
    }
}

/// The fields of a check as it was asked, each with a comma behind it.
fn asked(check: &AskedCheck) -> String {
    let key = match std::str::from_utf8(&check.key) {
        Ok(key) => format!("\"key\":{}", json!(key)),
        Err(_) => format!("\"key_base64\":\"{}\"", STANDARD.encode(&check.key)),
    };
    format!("{key},\"cost\":{},", check.cost.get())
}
