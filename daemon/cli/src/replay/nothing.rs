//! A log of which no line asked anything.

use anyhow::{Result, bail};
use tollgate_replay::report::Report;

/// Refuses to call it a success that lines were read and none was decided.
pub(super) fn refuse(report: &Report) -> Result<()> {
    let source = &report.source;
    if source.lines == 0 || source.interrupted || report.offered.requests > 0 {
        return Ok(());
    }
    if source.broken == source.lines {
        bail!("no line could be read; see above why");
    }
    if source.keyless > 0 {
        bail!(
            "no line had a key; --key says what it is made of, and --field where that stands in JSON or \
             CSV; of headers the combined format has but Referer and User-Agent"
        );
    }
    if source.unruled > 0 {
        bail!("no rule was for any line; see which paths and methods the rules match");
    }
    Ok(())
}
