//! The web applications of `docs/recipes.md`, each as a server with the daemon.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tollgate_testkit::{ClientKind, Folder, Port, until};

use crate::client::send;
use crate::process::{Daemon, page_block, read_repository};

/// A running application, killed on drop.
#[derive(Debug)]
struct Application {
    child: Child,
    port: Port,
    _folder: Folder,
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
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let application = Self { child, port, _folder: folder };
        let is_ready = || TcpStream::connect(application.address()).ok().map(drop);
        assert!(until(is_ready).is_some(), "{command:?} does not listen");
        application
    }

    fn address(&self) -> (&'static str, u16) {
        ("127.0.0.1", self.port.number())
    }

    /// The status of a response, the remaining requests, and whether there is `Retry-After`.
    fn get(&self, path: &str) -> (u16, Option<u64>, bool) {
        let response = send(self.address(), &format!("GET {path}"), &[], "");
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
    assert_eq!(until(limited), Some((200, Some(99), false)));
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
