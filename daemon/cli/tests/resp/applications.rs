//! The web applications of `docs/recipes.md`, each as a server with the daemon.

use std::fs::{self, File};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use tollgate_testkit::{ClientKind, Folder, Port, until};

use crate::client::{Client, Response};
use crate::process::{Daemon, page_block, read_repository};

/// The file with the standard error of an application.
const ERRORS: &str = "stderr";

/// A running application, killed on drop. A test that fails prints what it wrote.
#[derive(Debug)]
struct Application {
    child: Child,
    port: Port,
    folder: Folder,
}

impl Application {
    /// Writes the files of the recipe and starts its command.
    fn start(mut command: Command, files: &[&str], arguments: &[&str], daemon: &Daemon) -> Self {
        let (page, folder) = (read_repository("docs/recipes.md"), Folder::create());
        for name in files {
            let text = page_block(&page, name).replace("6380", &daemon.port().to_string());
            // A busy machine may need longer than the timeouts of the recipe.
            let text = text.replace("0.25", "20").replace("TIMEOUT_MS = 250", "TIMEOUT_MS = 20000");
            folder.write(name, text);
        }
        let port = Port::reserve();
        let number = port.number().to_string();
        command.args(arguments.iter().map(|argument| argument.replace("PORT", &number)));
        command.env("PORT", &number).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(folder.path().join(ERRORS)).unwrap());
        let child = command.spawn().unwrap();
        let application = Self { child, port, folder };
        assert!(until(|| application.try_get("/other")).is_some(), "{command:?} does not respond");
        application
    }

    /// The response; `None` if there is none.
    fn try_get(&self, path: &str) -> Option<Response> {
        let stream = TcpStream::connect(("127.0.0.1", self.port.number())).ok()?;
        Client::new(stream).try_send(&format!("GET {path}"), &["Connection: close"], "")
    }

    /// The status of a response, the remaining requests, and whether there is `Retry-After`.
    fn get(&self, path: &str) -> (u16, Option<u64>, bool) {
        let response = self.try_get(path).unwrap_or_else(|| panic!("no response to {path}"));
        let wait = response.header("retry-after").map(|value| value.parse::<u32>().unwrap());
        assert!(wait.is_none_or(|wait| (1..=3600).contains(&wait)), "{response:?}");
        let policy = response.header("ratelimit-policy");
        assert_eq!(policy.is_some(), response.remaining().is_some(), "{response:?}");
        (response.status, response.remaining(), wait.is_some())
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let errors = fs::read_to_string(self.folder.path().join(ERRORS));
            eprintln!("standard error of the application: {errors:?}");
        }
    }
}

fn check(kind: ClientKind, files: &[&str], arguments: &[&str]) {
    let Some(command) = kind.command() else { return };
    let page = read_repository("docs/recipes.md");
    let config = page_block(&page, "tollgate.yaml").replace("5/min log", "5/h log");
    let mut daemon = Daemon::with_listener("--resp", &[("tollgate.yaml", &config)]);
    let application = Application::start(command, files, arguments, &daemon);
    // Until it has a connection to the daemon, it fails open.
    let limited =
        || Some(application.get("/other")).filter(|(_, remaining, _)| remaining.is_some());
    let (status, remaining, has_wait) = until(limited).unwrap();
    assert!((200, false) == (status, has_wait) && remaining >= Some(98), "{remaining:?}");
    for remaining in (0..5).rev() {
        assert_eq!(application.get("/login"), (200, Some(remaining), false));
    }
    assert_eq!(application.get("/login"), (429, Some(0), true));
    daemon.kill();
    assert_eq!(application.get("/login"), (503, None, false), "fail closed");
    assert_eq!(application.get("/other"), (200, None, false), "fail open");
}

#[test]
fn flask_recipe_limits_and_fails_as_configured() {
    let arguments = ["-m", "flask", "--app", "flask_app", "run", "--port", "PORT"];
    check(ClientKind::Python, &["limits.py", "flask_app.py"], &arguments);
}

#[test]
fn fastapi_recipe_limits_and_fails_as_configured() {
    let arguments = ["-m", "uvicorn", "fastapi_app:app", "--port", "PORT"];
    check(ClientKind::Python, &["limits.py", "fastapi_app.py"], &arguments);
}

#[test]
fn django_recipe_limits_and_fails_as_configured() {
    let arguments = ["django_app.py", "runserver", "--noreload", "PORT"];
    check(ClientKind::Python, &["limits.py", "django_app.py"], &arguments);
}

#[test]
fn express_recipe_limits_and_fails_as_configured() {
    check(ClientKind::Node, &["app.cjs"], &["app.cjs"]);
}
