//! What the files of `envoy.config` say.

use std::path::Path;
use std::sync::Arc;

use tollgate::OnStoreError;

use super::envoy::{Envoy, RuleOnStoreError};
use crate::domain_files::{self, Unusable};
use crate::fields::{Broken, Fields, Written};
use tollgate_descriptors::{DescriptorConfigError, Domains, ReadOptions, Source};

/// The domains of all files; none where a server says what they are.
pub(super) fn read(fields: &Fields<'_>, envoy: &Envoy) -> Result<Arc<Domains>, Broken> {
    let mut sources = Vec::new();
    if envoy.xds.is_some() || envoy.config.is_empty() {
        return Ok(Arc::default());
    }
    let written = fields.list("config")?;
    let mut broken = None;
    for (at, (path, written)) in envoy.config.iter().zip(&written).enumerate() {
        match domain_files::read(path) {
            Ok(files) => sources.extend(files.into_iter().map(|file| (at, file))),
            Err(error) => broken = Some(report_file(fields, at, written, &error)),
        }
    }
    if let Some(broken) = broken {
        return Err(broken);
    }
    let (places, sources): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
    Domains::from_yaml(&sources, &envoy.read_options()).map(Arc::new).map_err(|error| {
        let at = place(&places, &sources, &error);
        report_domain(fields, at, written.get(at), &error)
    })
}

impl Envoy {
    /// How a configuration of envoyproxy/ratelimit is read.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            merge_domains: self.merge_domains,
            charging: self.charging,
            on_store_error: match self.on_store_error {
                RuleOnStoreError::Allow => OnStoreError::Allow,
                // An error is made of the decision, so that none passes by another way.
                RuleOnStoreError::Deny | RuleOnStoreError::Error => OnStoreError::Deny,
            },
        }
    }
}

/// Which of the paths holds the file at fault.
fn place(places: &[usize], sources: &[Source], error: &DescriptorConfigError) -> usize {
    let found = places.iter().zip(sources).find(|(_, place)| place.name == error.file());
    found.map_or(0, |(at, _)| *at)
}

fn report_file(fields: &Fields<'_>, at: usize, written: &Written, it: &Unusable) -> Broken {
    let message = format!("{}: {}", it.file.display(), it.why);
    let field = format!("{}.config[{at}]", fields.path);
    fields.report_in_file(&field, message, &written.origin, (&it.file, None))
}

fn report_domain(
    fields: &Fields<'_>,
    at: usize,
    written: Option<&Written>,
    error: &DescriptorConfigError,
) -> Broken {
    let (file, message) = (error.file(), error.message());
    let line = error.line().and_then(|line| u64::try_from(line).ok());
    let message = match line {
        Some(line) => format!("{file}:{line}: {message}"),
        None => format!("{file}: {message}"),
    };
    let origin = written.map_or(&fields.origin, |x| &x.origin);
    let field = format!("{}.config[{at}]", fields.path);
    fields.report_in_file(&field, message, origin, (Path::new(file), line))
}
