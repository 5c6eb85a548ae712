//! Threads that serve clients. Each has a runtime of its own, and whoever is served by one stays there: what they say wakes that
//! one thread, and no other that would only find that there is nothing left to do.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

/// The threads. They end with this, and with them whatever is left of what they served.
#[derive(Debug)]
pub struct Lanes(Vec<Lane>);

#[derive(Debug)]
struct Lane {
    /// There until it ends.
    runtime: Option<Runtime>,
    /// Everybody who is served has a part of it.
    clients: Arc<()>,
}

impl Lanes {
    /// So many threads.
    pub fn open(count: usize) -> io::Result<Self> {
        let open = |_| {
            // With one worker: what would hold it up has another take its place.
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            Ok(Lane { runtime: Some(runtime), clients: Arc::default() })
        };
        (0..count.max(1)).map(open).collect::<io::Result<_>>().map(Self)
    }

    /// Has a client served by the thread that has the fewest.
    pub(crate) fn serve(&self, client: impl Future<Output = ()> + Send + 'static) {
        let free = self.0.iter().min_by_key(|lane| Arc::strong_count(&lane.clients));
        let Some(Lane { runtime: Some(runtime), clients }) = free else { return };
        let here = Arc::clone(clients);
        runtime.spawn(async move {
            client.await;
            drop(here);
        });
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Nobody waits for what is left: whoever had to be told that it ends was.
        self.0
            .iter_mut()
            .filter_map(|lane| lane.runtime.take())
            .for_each(Runtime::shutdown_background);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn clients_are_shared_out_and_stay_where_they_are() {
        let lanes = Lanes::open(2).unwrap();
        let (told, heard) = mpsc::channel();
        let (stay, _staying) = tokio::sync::watch::channel(());
        for _ in 0..4 {
            let (told, mut stay) = (told.clone(), stay.subscribe());
            lanes.serve(async move {
                told.send(std::thread::current().id()).unwrap();
                let _ = stay.changed().await;
                tokio::task::yield_now().await;
                told.send(std::thread::current().id()).unwrap();
            });
        }
        let mut first: Vec<_> = (0..4).map(|_| heard.recv().unwrap()).collect();
        drop(stay);
        let mut second: Vec<_> = (0..4).map(|_| heard.recv().unwrap()).collect();
        for all in [&mut first, &mut second] {
            all.sort_by_key(|id| format!("{id:?}"));
            assert!(all[0] == all[1] && all[1] != all[2] && all[2] == all[3], "{all:?}");
        }
        assert_eq!(first, second);
    }
}
