//! The way to the store for everything that answers requests: work for the writer, views for readers.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, mpsc};

use crate::problem::Problem;
use crate::storage::{self, OpenError, Opened, Parts, Tables, Views};
use crate::stored::{Fault, Shared, problem_of};
use crate::subscriptions::keys::Keys;
use crate::subscriptions::turn::Turn;
use crate::subscriptions::webhook::Delivery;
use crate::writer::{self, Jobs};

pub struct StoreHandle {
    pub shared: Arc<Shared>,
    pub keys: Keys,
    jobs: Option<Arc<Jobs>>,
    views: Option<Arc<dyn Views>>,
    /// Looks that may run at once.
    looks: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    /// What was acknowledged and is not there: nothing is read or written then.
    damage: Option<String>,
}

impl StoreHandle {
    pub fn open(folder: &Path) -> Result<(StoreHandle, mpsc::UnboundedReceiver<Delivery>), OpenError> {
        match storage::open(folder)? {
            Opened::Ready(parts) => {
                let failed = |source| OpenError::Folder { folder: folder.to_owned(), source };
                StoreHandle::over(parts).map_err(|error| error.map_io(failed))
            }
            Opened::Damaged(why) => StoreHandle::damaged(why),
        }
    }

    /// Over a store that is open.
    pub fn over(
        Parts { mut writer, views }: Parts,
    ) -> Result<(StoreHandle, mpsc::UnboundedReceiver<Delivery>), StartError> {
        let keys = Keys::load(&mut *writer).map_err(StartError::Key)?;
        let shared = Arc::new(Shared::default());
        let (deliveries, to_deliver) = mpsc::unbounded_channel();
        let (jobs, writer) =
            writer::start(writer, shared.clone(), keys.clone(), deliveries).map_err(StartError::Thread)?;
        let store = StoreHandle {
            shared,
            keys,
            jobs: Some(Arc::new(jobs)),
            looks: Arc::new(Semaphore::new(views.at_once())),
            views: Some(views),
            writer: Some(writer),
            damage: None,
        };
        Ok((store, to_deliver))
    }

    /// A store that says what is wrong with it, and does nothing else: nothing of it is changed.
    fn damaged(why: String) -> Result<(StoreHandle, mpsc::UnboundedReceiver<Delivery>), OpenError> {
        let keys = Keys::unstored().map_err(OpenError::Key)?;
        let (_, to_deliver) = mpsc::unbounded_channel();
        let store = StoreHandle {
            shared: Arc::default(),
            keys,
            jobs: None,
            views: None,
            looks: Arc::new(Semaphore::new(0)),
            writer: None,
            damage: Some(why),
        };
        Ok((store, to_deliver))
    }

    /// What was acknowledged and is not there.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn check(&self) -> Result<(), Problem> {
        self.damage.as_deref().map_or(Ok(()), |why| Err(Problem::damaged(why)))
    }

    /// Carries `work` out in the writer's next transaction. When this returns `Ok`, what it wrote is on the disk.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&mut Turn<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.check()?;
        match &self.jobs {
            Some(jobs) => jobs.run(work).await,
            None => Err(closing()),
        }
    }

    /// The way to write for those that must not keep the store open.
    pub fn jobs(&self) -> Weak<Jobs> {
        self.jobs.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// Runs `look` on a snapshot of what is committed, on a thread that may block.
    pub async fn read<T, F>(&self, look: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Tables, &Shared) -> Result<T, Fault> + Send + 'static,
    {
        self.check()?;
        let Some(views) = self.views.clone() else { return Err(closing()) };
        let permit = self.looks.clone().acquire_owned().await.map_err(Problem::failed)?;
        let shared = self.shared.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let (mut look, mut looked) = (Some(look), None);
            let viewed = views.view(&mut |tables| {
                if let Some(look) = look.take() {
                    looked = Some(look(tables, &shared));
                }
            });
            viewed.map(|()| looked)
        });
        let looked = looked.await;
        // Only now: what was read and nobody has taken yet is in memory, too.
        drop(permit);
        match looked.map_err(Problem::failed)? {
            Ok(Some(Ok(answer))) => Ok(answer),
            Ok(Some(Err(Fault::Refused(problem)))) => Err(problem),
            Ok(Some(Err(Fault::Failed(error)))) | Err(error) => Err(problem_of(&error)),
            Ok(None) => Err(Problem::failed("the store showed nothing")),
        }
    }

    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }
}

impl Drop for StoreHandle {
    /// The writer ends when nobody can give it work; whoever opens the folder next finds it free.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn closing() -> Problem {
    Problem::failed("it is being closed")
}

/// Why a store that is open cannot be used.
#[derive(Debug)]
pub enum StartError {
    Key(String),
    Thread(std::io::Error),
}

impl StartError {
    fn map_io(self, of_io: impl FnOnce(std::io::Error) -> OpenError) -> OpenError {
        match self {
            StartError::Key(why) => OpenError::Key(why),
            StartError::Thread(error) => of_io(error),
        }
    }
}
