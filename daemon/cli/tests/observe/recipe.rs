//! The recipe of `docs/recipes.md` and the commands of `docs/observe.md`.

use tollgate_testkit::{ClientKind, Folder, Server};

use crate::process::{Daemon, page_block, printed, read_repository, run};
use crate::support::{Counts, FLAGS, Observer, copied_total, wait_for_totals};

#[test]
fn the_recipe_answers_its_questions() {
    let Some(mut application) = ClientKind::Python.command() else { return };
    let (page, folder) = (read_repository("docs/recipes.md"), Folder::create());
    for name in ["counting.py", "averages.py"] {
        folder.write(name, page_block(&page, name));
    }
    let server = Server::with(|config| config.line(FLAGS));
    let config = page_block(&page, "observed.yaml")
        .replace("redis://127.0.0.1:6379 }", &format!("{}, deadline: 5s }}", server.url()))
        .replace("keys:", "api:");
    let observer = Observer::observing(&config, &[], 1);
    let daemon = Daemon::with_config(&config, |command| command);
    application.arg(folder.join("counting.py")).env("REDIS", server.url());
    let denied = printed(application, b"");
    // The requests may be in two minutes.
    assert!(denied.lines().count() <= 20, "{denied}");
    let expected = Counts::from([("busy".to_owned(), 120), ("quiet".to_owned(), 10)]);
    wait_for_totals(&daemon, &expected);
    for (order, first) in [("newest", "quiet"), ("oldest", "busy"), ("most-used", "busy")] {
        let (_, table, _) = run(["keys", "api", "--order", order, "--url", &daemon.url]);
        assert!(table.lines().nth(1).unwrap().starts_with(first), "{order}: {table}");
    }
    let found = || copied_total(&server, "tollgate:{busy}:data").filter(|total| *total == 120);
    assert!(tollgate_testkit::until(found).is_some());
    let mut averages = ClientKind::Python.command().unwrap();
    let script = page_block(&page, "averages.py").replace("\"keys\"", "\"api\"");
    averages.arg(folder.write("averages.py", script)).args(["busy", "15"]);
    averages.env("TOLLGATE_URL", &daemon.url);
    assert_eq!(printed(averages, b""), "busy: 120 requests in 15 min, 8.0 a minute\n");
    assert!(observer.stop().contains("counted: 130 increments"));
}
