//! Any bytes, both ways, until both sides have said their last.

use tokio::io::{AsyncBufRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;

use crate::attempt::{Outcome, Record};
use crate::gate::idle;
use crate::limits::Limits;
use crate::stream::{Broken, PIECE, pass_all};

/// Passes bytes between a client and a server. One side may end while the other goes on.
pub(crate) async fn tunnel(
    from_client: &mut (impl AsyncBufRead + Unpin),
    to_client: &mut (impl AsyncWrite + Unpin),
    server: TcpStream,
    record: &Record,
    limits: &Limits,
) -> Outcome {
    let (from_server, mut to_server) = server.into_split();
    let mut from_server = BufReader::with_capacity(PIECE, from_server);
    let up = async {
        pass_all(from_client, &mut to_server, &record.up).await.map_err(|broken| match broken {
            Broken::From | Broken::Chunks => Outcome::ClientLeft,
            Broken::To => Outcome::ServerLeft,
        })
    };
    let down = async {
        pass_all(&mut from_server, to_client, &record.down).await.map_err(|broken| match broken {
            Broken::From | Broken::Chunks => Outcome::ServerLeft,
            Broken::To => Outcome::ClientLeft,
        })
    };
    tokio::select! {
        ended = async { tokio::try_join!(up, down) } => match ended {
            Ok(_) => Outcome::Completed,
            Err(outcome) => outcome,
        },
        () = idle(record, limits.idle_time) => Outcome::Idle,
    }
}
