//! The session: connecting, staying connected, holding the lock, and never waiting longer than allowed.
//!
//! The lock is an ephemeral node, so a dead master's goes with its session. It alone does not fence: a master that was paused does not
//! know that its session has expired. So whoever takes the lock raises the epoch node's version, and every write is one transaction with
//! a check of that version; a master that was overtaken cannot write, whatever it believes.
//!
//! A connection that is lost comes back by itself, and the call is tried again until its time is up. A session that expired is replaced,
//! and the lock taken anew, if nobody has raised the epoch in between; otherwise this master is fenced for good.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use zookeeper_client as zk;

use super::ZooKeeperOptions;
use super::node::Paths;
use crate::engine::Wait;
use crate::error::{Error, ErrorKind, Result};

/// Pause before a call is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// How often a standby looks.
const POLL: Duration = Duration::from_millis(100);

/// Why a call did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server's answer, or none.
    Answer(zk::Error),
    /// Another master raised the epoch.
    Fenced,
}

impl From<zk::Error> for Failure {
    fn from(error: zk::Error) -> Self {
        Self::Answer(error)
    }
}

impl From<zk::CheckWriteError> for Failure {
    fn from(error: zk::CheckWriteError) -> Self {
        match error {
            // The epoch node has another version, or is gone with the whole store.
            zk::CheckWriteError::CheckFailed {
                source: zk::Error::BadVersion | zk::Error::NoNode,
            } => Self::Fenced,
            zk::CheckWriteError::CheckFailed { source }
            | zk::CheckWriteError::RequestFailed { source } => Self::Answer(source),
            zk::CheckWriteError::OperationFailed { source, .. } => Self::Answer(source),
        }
    }
}

/// A client, and the version of the epoch node its writes must find.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) client: zk::Client,
    pub(super) epoch: i32,
}

impl Connected {
    /// A transaction that begins with the check that nobody has taken over.
    pub(super) fn fenced(
        &self,
        paths: &Paths,
    ) -> std::result::Result<zk::CheckWriter<'_>, Failure> {
        Ok(self
            .client
            .new_check_writer(&paths.epoch, Some(self.epoch))?)
    }
}

pub(super) struct Session {
    shared: Arc<Shared>,
    runtime: Mutex<Option<Runtime>>,
}

struct Shared {
    servers: String,
    paths: Paths,
    options: ZooKeeperOptions,
    /// Names this engine in the lock node, so that it knows its own lock after a session was lost.
    token: String,
    client: tokio::sync::Mutex<Option<zk::Client>>,
    /// Version of the epoch node once the lock was taken.
    epoch: Mutex<Option<i32>>,
    fenced: AtomicBool,
}

/// Nodes are open to everybody, as Spark's own are.
pub(super) fn persistent() -> zk::CreateOptions<'static> {
    zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all())
}

fn ephemeral() -> zk::CreateOptions<'static> {
    zk::CreateMode::Ephemeral.with_acls(zk::Acls::anyone_all())
}

impl Session {
    pub(super) fn new(servers: &str, paths: Paths, options: ZooKeeperOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("recovery-zookeeper")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Io,
                    servers,
                    format!("cannot start the network thread: {error}"),
                )
            })?;
        let token = crate::entry::hex(&crate::entry::new_store_id()?);
        let shared = Shared {
            servers: servers.into(),
            paths,
            options,
            token,
            client: tokio::sync::Mutex::default(),
            epoch: Mutex::default(),
            fenced: AtomicBool::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared),
            runtime: Mutex::new(Some(runtime)),
        })
    }

    /// Runs `call`, again if the connection was lost, until it answers or the time is up.
    pub(super) fn run<T, F, Call>(&self, what: &str, call: Call) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = std::result::Result<T, Failure>> + Send,
        Call: Fn(Connected) -> F + Send + Sync + 'static,
    {
        let limit = self.shared.options.operation_timeout;
        self.run_within(what, limit, call)
    }

    fn run_within<T, F, Call>(&self, what: &str, limit: Duration, call: Call) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = std::result::Result<T, Failure>> + Send,
        Call: Fn(Connected) -> F + Send + Sync + 'static,
    {
        let (sender, receiver) = sync_channel(1);
        {
            let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(runtime) = runtime.as_ref() else {
                return Err(Error::new(
                    ErrorKind::Closed,
                    &self.shared.servers,
                    "the engine is closed",
                ));
            };
            let shared = Arc::clone(&self.shared);
            let what = what.to_owned();
            // A task and a channel rather than `block_on`: the caller may be inside a runtime of its own.
            runtime.spawn(async move {
                let result = shared.call(&what, limit, call).await;
                // Nobody listens any more once the caller's time was up.
                let _ = sender.send(result);
            });
        }
        // The task keeps to the limit itself; the margin is for a machine too busy to run it.
        match receiver.recv_timeout(limit + Duration::from_secs(2)) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(self.shared.unavailable(what, limit, None)),
            Err(RecvTimeoutError::Disconnected) => Err(Error::new(
                ErrorKind::Closed,
                &self.shared.servers,
                format!(
                    "the engine was closed meanwhile: cannot {what}, or it is not known whether it was done"
                ),
            )),
        }
    }

    /// Takes the lock as `wait` says, then raises the epoch.
    pub(super) fn take_lock(&self) -> Result<()> {
        let started = Instant::now();
        let wait = self.shared.options.wait;
        let place = &self.shared.paths.lock;
        loop {
            let (lock, token) = (place.clone(), self.shared.token.clone());
            let attempt = self.run("take the lock", move |connected| {
                let (lock, token) = (lock.clone(), token.clone());
                async move {
                    match connected
                        .client
                        .create(&lock, token.as_bytes(), &ephemeral())
                        .await
                    {
                        Ok(_) => Ok(true),
                        Err(zk::Error::NodeExists) => {
                            renew_own_lock(&connected.client, &lock, &token).await
                        }
                        Err(error) => Err(error.into()),
                    }
                }
            });
            match attempt {
                Ok(true) => return self.raise_epoch(),
                Ok(false) => {}
                // A standby outlasts an outage of the servers.
                Err(error) if error.kind() == ErrorKind::Unavailable && wait == Wait::Forever => {}
                Err(error) => return Err(error),
            }
            let locked = |message: &str| Err(Error::new(ErrorKind::Locked, place, message));
            match wait {
                Wait::No => {
                    return locked("another master holds this store; stop it, or stand by for it");
                }
                Wait::For(limit) if started.elapsed() >= limit => {
                    return locked(
                        "another master still holds this store after the time to stand by",
                    );
                }
                Wait::For(_) | Wait::Forever => {}
            }
            if self
                .shared
                .options
                .cancel
                .as_ref()
                .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            {
                return locked("standing by was cancelled");
            }
            std::thread::sleep(match wait {
                Wait::For(limit) => POLL.min(limit.saturating_sub(started.elapsed())),
                _ => POLL,
            });
        }
    }

    /// From here on no transaction of an earlier master goes through.
    fn raise_epoch(&self) -> Result<()> {
        let (epoch, token) = (self.shared.paths.epoch.clone(), self.shared.token.clone());
        let version = self.run("raise the epoch", move |connected| {
            let (epoch, token) = (epoch.clone(), token.clone());
            async move {
                // Raising it twice, after an answer that was lost, does no harm.
                Ok(connected
                    .client
                    .set_data(&epoch, token.as_bytes(), None)
                    .await?
                    .version)
            }
        })?;
        *self
            .shared
            .epoch
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(version);
        Ok(())
    }

    /// Gives the lock back and ends the session.
    pub(super) fn close(&self) {
        let held = self
            .shared
            .epoch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some();
        if held && !self.is_fenced() {
            let (lock, token) = (self.shared.paths.lock.clone(), self.shared.token.clone());
            let limit = self
                .shared
                .options
                .operation_timeout
                .min(Duration::from_secs(2));
            let released = self.run_within("give the lock back", limit, move |connected| {
                let (lock, token) = (lock.clone(), token.clone());
                async move {
                    if is_own_lock(&connected.client, &lock, &token).await? {
                        connected.client.delete(&lock, None).await?;
                    }
                    Ok(())
                }
            });
            if let Err(error) = released {
                tracing::warn!(%error, "the lock goes with the session only");
            }
        }
        let runtime = self
            .runtime
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(runtime) = runtime {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move { *shared.client.lock().await = None });
            runtime.shutdown_timeout(Duration::from_millis(500));
        }
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.shared.fenced.load(Ordering::Acquire)
    }
}

/// Whether the lock node is this engine's.
async fn is_own_lock(
    client: &zk::Client,
    lock: &str,
    token: &str,
) -> std::result::Result<bool, zk::Error> {
    match client.get_data(lock).await {
        Ok((data, _)) => Ok(data == token.as_bytes()),
        Err(zk::Error::NoNode) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The answer to an earlier attempt may have been lost, with its session perhaps: then the lock is ours, and is put under this session.
async fn renew_own_lock(
    client: &zk::Client,
    lock: &str,
    token: &str,
) -> std::result::Result<bool, Failure> {
    if !is_own_lock(client, lock, token).await? {
        return Ok(false);
    }
    let mut writer = client.new_multi_writer();
    writer.add_delete(lock, None)?;
    writer.add_create(lock, token.as_bytes(), &ephemeral())?;
    match writer.commit().await {
        Ok(_) => Ok(true),
        Err(zk::MultiWriteError::OperationFailed { .. }) => Ok(false),
        Err(zk::MultiWriteError::RequestFailed { source }) => Err(source.into()),
    }
}

impl Shared {
    async fn call<T, F, Call>(&self, what: &str, limit: Duration, call: Call) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Failure>> + Send,
        Call: Fn(Connected) -> F,
    {
        let deadline = tokio::time::Instant::now() + limit;
        let mut last = None;
        loop {
            if self.fenced.load(Ordering::Acquire) {
                return Err(self.overtaken());
            }
            let attempt = async {
                let connected = self.connected().await?;
                call(connected).await
            };
            match tokio::time::timeout_at(deadline, attempt).await {
                Err(_) => return Err(self.unavailable(what, limit, last)),
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(Failure::Fenced)) => {
                    self.fenced.store(true, Ordering::Release);
                    return Err(self.overtaken());
                }
                Ok(Err(Failure::Answer(error))) => match error {
                    zk::Error::SessionExpired
                    | zk::Error::ClientClosed
                    | zk::Error::SessionMoved => {
                        tracing::warn!(servers = %self.servers, %error, "the session is gone; starting another");
                        *self.client.lock().await = None;
                        last = Some(error);
                    }
                    // `Custom` is what the network said: reset, refused, broken pipe.
                    zk::Error::ConnectionLoss
                    | zk::Error::Timeout
                    | zk::Error::NoHosts
                    | zk::Error::Throttled
                    | zk::Error::Custom(_) => {
                        last = Some(error);
                    }
                    error => return Err(self.refused(what, &error)),
                },
            }
            if tokio::time::Instant::now() + PAUSE >= deadline {
                return Err(self.unavailable(what, limit, last));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The live client, or a new one that holds the lock if the old one did.
    async fn connected(&self) -> std::result::Result<Connected, Failure> {
        let mut slot = self.client.lock().await;
        let epoch = *self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = slot
            .as_ref()
            .filter(|client| !client.state().is_terminated())
        {
            return Ok(Connected {
                client: client.clone(),
                epoch: epoch.unwrap_or(-1),
            });
        }
        let connector = zk::Client::connector().with_session_timeout(self.options.session_timeout);
        let client = connector.connect(&self.servers).await?;
        if let Some(epoch) = epoch {
            self.take_lock_again(&Connected {
                client: client.clone(),
                epoch,
            })
            .await?;
        }
        *slot = Some(client.clone());
        Ok(Connected {
            client,
            epoch: epoch.unwrap_or(-1),
        })
    }

    /// After a session was lost: the lock is ours again only if nobody has raised the epoch.
    async fn take_lock_again(&self, connected: &Connected) -> std::result::Result<(), Failure> {
        let lock = &self.paths.lock;
        let mut writer = connected.fenced(&self.paths)?;
        // What is left of our own lost session would stand in the way until the server notices its end.
        match connected.client.get_data(lock).await {
            Ok((data, _)) if data == self.token.as_bytes() => writer.add_delete(lock, None)?,
            Ok(_) => return Err(Failure::Fenced),
            Err(zk::Error::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
        writer.add_create(lock, self.token.as_bytes(), &ephemeral())?;
        match writer.commit().await {
            Ok(_) => Ok(()),
            // Somebody, or the end of our own session, was faster between look and leap.
            Err(zk::CheckWriteError::OperationFailed {
                source: zk::Error::NodeExists | zk::Error::NoNode,
                ..
            }) => Err(Failure::Answer(zk::Error::ConnectionLoss)),
            Err(error) => Err(error.into()),
        }
    }

    fn unavailable(&self, what: &str, limit: Duration, last: Option<zk::Error>) -> Error {
        let reason = last.map_or_else(String::new, |error| format!("; last: {error}"));
        let message = format!(
            "cannot {what}: no answer within {} ms{reason}",
            limit.as_millis()
        );
        Error::new(ErrorKind::Unavailable, &self.servers, message)
    }

    fn overtaken(&self) -> Error {
        let message =
            "another master took this store over; this one must not write any more and should stop";
        Error::new(ErrorKind::Fenced, &self.paths.root, message)
    }

    fn refused(&self, what: &str, error: &zk::Error) -> Error {
        let kind = match error {
            zk::Error::QuotaExceeded => ErrorKind::Full,
            zk::Error::NoAuth | zk::Error::AuthFailed | zk::Error::NotReadOnly => {
                ErrorKind::ReadOnly
            }
            _ => ErrorKind::Io,
        };
        Error::new(kind, &self.paths.root, format!("cannot {what}: {error}"))
    }
}
