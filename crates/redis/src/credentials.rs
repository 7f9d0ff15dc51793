//! The credentials of connections. A password in a file can be replaced while the store is open.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::RedisConnectionInfo;
use tollgate_state::{Failure, FailureKind};

use crate::url::Login;

/// The credentials of connections to one kind of server.
pub(crate) struct Credentials {
    login: Login,
    /// The option that names the file with the password.
    option: &'static str,
    state: Mutex<State>,
}

/// The state of the password in the file.
#[derive(Default)]
struct State {
    /// The password that a server accepted last.
    current: Option<String>,
    /// The one before, for servers that do not accept the current one yet.
    previous: Option<String>,
    /// Why the password in the file is not in use.
    failure: Option<Failure>,
}

impl Credentials {
    pub(crate) fn new(login: Login, option: &'static str) -> Self {
        Credentials { login, option, state: Mutex::default() }
    }

    /// Returns the passwords for a new connection, the most likely one first. A server may reject the
    /// current one, because the file has a newer one, or because it does not know it yet.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, and no password of it is known.
    pub(crate) async fn passwords(&self) -> Result<Vec<Option<String>>, Failure> {
        if self.login.password_file.is_none() {
            return Ok(vec![self.login.password.clone()]);
        }
        let read = self.read_file().await;
        let state = self.lock();
        let mut passwords = vec![state.current.clone()];
        passwords.push(match (read, &state.current) {
            (Err(failure), None) => return Err(failure),
            (read, _) => read.ok(),
        });
        passwords.push(state.previous.clone());
        passwords.retain(Option::is_some);
        passwords.dedup();
        Ok(passwords)
    }

    /// Adds the user and a password to the parameters of a connection.
    pub(crate) fn apply(
        &self,
        mut info: RedisConnectionInfo,
        password: Option<&str>,
    ) -> RedisConnectionInfo {
        if let Some(username) = &self.login.username {
            info = info.set_username(username).set_password("");
        }
        match password {
            Some(password) => info.set_password(password),
            None => info,
        }
    }

    /// Records that a server accepted a password, which new connections then use first.
    pub(crate) fn record_accepted(&self, password: &str) {
        let mut state = self.lock();
        if state.current.as_deref() != Some(password) {
            state.previous = state.current.replace(password.to_owned());
        }
    }

    /// Returns why the password in the file is not in use, if it is not.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// Reads the password in the file.
    pub(crate) async fn read_file(&self) -> Result<String, Failure> {
        let file: PathBuf = self.login.password_file.clone().unwrap_or_default();
        let (shown, option) = (file.display().to_string(), self.option);
        let unusable = |why: &dyn fmt::Display| {
            let message = format!("the option {option}: cannot read {shown}: {why}");
            Failure::new(FailureKind::WrongPassword, message)
        };
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await;
        let read = read.map_err(|error| unusable(&error))?.map_err(|error| unusable(&error))?;
        match read.trim_end_matches(['\r', '\n']) {
            "" => Err(unusable(&"it is empty")),
            password => Ok(password.to_owned()),
        }
    }

    pub(crate) fn username(&self) -> Option<&str> {
        self.login.username.as_deref()
    }

    /// Returns whether the password is in a file.
    pub(crate) fn has_password_file(&self) -> bool {
        self.login.password_file.is_some()
    }

    /// Returns whether a password is the one that a server accepted last, or none was accepted yet.
    pub(crate) fn may_be_in_use(&self, password: &str) -> bool {
        self.lock().current.as_deref().is_none_or(|current| current == password)
    }

    /// Records whether the password in the file can be used.
    pub(crate) fn set_failure(&self, failure: Option<Failure>) {
        self.lock().failure = failure;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Omits the passwords.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("login", &self.login).finish_non_exhaustive()
    }
}
