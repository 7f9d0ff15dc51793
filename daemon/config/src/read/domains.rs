//! The domains defined by the files of `envoy.config`.

use std::path::Path;
use std::sync::Arc;

use tollgate::OnStoreError;

use super::envoy::{Envoy, RuleOnStoreError};
use crate::domain_files::{self, DomainFileError};
use crate::fields::{Invalid, SectionReader, SourceText};
use tollgate_descriptors::{DescriptorConfigError, Domains, ReadOptions, Source};

/// The domains of all files; empty if a control plane provides them.
pub(super) fn read(fields: &SectionReader<'_>, envoy: &Envoy) -> Result<Arc<Domains>, Invalid> {
    let mut sources = Vec::new();
    if envoy.xds.is_some() || envoy.config.is_empty() {
        return Ok(Arc::default());
    }
    let written = fields.list("config")?;
    let mut invalid = None;
    for (at, (path, written)) in envoy.config.iter().zip(&written).enumerate() {
        match domain_files::read(path) {
            Ok(files) => sources.extend(files.into_iter().map(|file| (at, file))),
            Err(error) => invalid = Some(report_file(fields, at, written, &error)),
        }
    }
    if let Some(invalid) = invalid {
        return Err(invalid);
    }
    let (places, sources): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
    Domains::from_yaml(&sources, &envoy.read_options()).map(Arc::new).map_err(|error| {
        let at = place(&places, &sources, &error);
        report_domain(fields, at, written.get(at), &error)
    })
}

impl Envoy {
    /// The options for reading a configuration of envoyproxy/ratelimit.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            merge_domains: self.merge_domains,
            charging: self.charging,
            on_store_error: match self.on_store_error {
                RuleOnStoreError::Allow => OnStoreError::Allow,
                // The service turns the denial into an error.
                RuleOnStoreError::Deny | RuleOnStoreError::Error => OnStoreError::Deny,
            },
        }
    }
}

/// The index of the path that contains the file at fault.
fn place(places: &[usize], sources: &[Source], error: &DescriptorConfigError) -> usize {
    let found = places.iter().zip(sources).find(|(_, place)| place.name == error.file());
    found.map_or(0, |(at, _)| *at)
}

fn report_file(
    fields: &SectionReader<'_>,
    at: usize,
    written: &SourceText,
    error: &DomainFileError,
) -> Invalid {
    let message = format!("{}: {}", error.file.display(), error.reason);
    let field = format!("{}.config[{at}]", fields.path);
    fields.report_in_file(&field, message, &written.origin, (&error.file, None))
}

fn report_domain(
    fields: &SectionReader<'_>,
    at: usize,
    written: Option<&SourceText>,
    error: &DescriptorConfigError,
) -> Invalid {
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
