//! Where the limits come from.

use super::super::value::Kind;
use super::{Group, honoured, ignored};

pub(super) const GROUP: Group = Group {
    title: "Limits in files",
    variables: &[
        honoured(
            "CONFIG_TYPE",
            Kind::Text,
            "FILE",
            "`FILE`, or `GRPC_XDS_SOTW` for a server of xDS.",
        ),
        honoured(
            "RUNTIME_ROOT",
            Kind::Text,
            "/srv/runtime_data/current",
            "The files are in RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY.",
        ),
        honoured("RUNTIME_SUBDIRECTORY", Kind::Text, "", "See RUNTIME_ROOT."),
        honoured("RUNTIME_APPDIRECTORY", Kind::Text, "config", "See RUNTIME_ROOT."),
        ignored(
            "RUNTIME_IGNOREDOTFILES",
            Kind::Truth,
            "false",
            "what is read are files that end in .yaml or .yml and do not begin with a dot",
        )
        .holds("true"),
        honoured(
            "RUNTIME_WATCH_ROOT",
            Kind::Truth,
            "true",
            "With both values every change is found: a file that is written, added or removed, and \
             a symbolic link that is swapped, anywhere in the path.",
        ),
        honoured(
            "MERGE_DOMAIN_CONFIG",
            Kind::Truth,
            "false",
            "Whether files of one domain are merged; otherwise the second is refused.",
        ),
        honoured(
            "FORCE_START_WITHOUT_INITIAL_CONFIG",
            Kind::Truth,
            "false",
            "Whether it starts though there are no limits yet, or they are refused.",
        ),
        honoured(
            "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
            Kind::Truth,
            "false",
            "Whether it is healthy only while there is at least one domain.",
        ),
    ],
};
