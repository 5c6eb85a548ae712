//! MCP over lines: standard input and output of a client's process, or a socket that stands for them.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader};
use tokio::task::JoinSet;

pub use super::client::Caller;
use super::client::{AT_A_TIME, Client, Line};
use super::error::{Code, Error};
use super::message::{self, Id, Message};
use super::serve::{self, Whole};
use crate::gateway::Gateway;
use crate::outbox::{self, Outbox};

/// The longest line of a client.
pub(crate) const LONGEST: u64 = 16 << 20;

/// How many lines of one client are worked on, or answered and not heard yet. As long as it hears what it is answered, it is always
/// read: what it says next may be what others of its requests wait for.
const MOST: usize = 2 * AT_A_TIME;

/// Speaks with a client until it ends; what it has asked and not heard of by then is called off.
pub async fn speak(
    gateway: &Arc<Gateway>,
    caller: Caller,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let client = Arc::new(Client::new(caller));
    let (line, mut outgoing) = Line::new();
    client.open_outlet(line.clone());
    gateway.join(&client);
    let mut reader = BufReader::with_capacity(64 << 10, input);
    let mut working = JoinSet::new();
    let mut text = Vec::new();
    let mut outbox = Outbox::default();
    let mut is_over = false;
    while !(is_over && working.is_empty() && outgoing.is_empty() && outbox.is_empty()) {
        // It is read while something is written: who is slow to read may have more to say.
        tokio::select! {
            Some(message) = outgoing.recv(), if outbox.is_empty() => {
                outbox.line(&message);
                while !outbox.is_full() && let Ok(message) = outgoing.try_recv() {
                    outbox.line(&message);
                }
            }
            told = outbox.drain(&mut output), if !outbox.is_empty() => told?,
            Some(_) = working.join_next(), if !working.is_empty() => {}
            read = read_line(&mut reader, &mut text), if !is_over && working.len() < MOST => {
                match read {
                    Ok(true) => {
                        take(gateway, &client, &line, &text, &mut working);
                        outbox::empty(&mut text);
                    }
                    Ok(false) => {
                        is_over = true;
                        // Whoever does not listen any more has nothing done for it.
                        client.leave();
                    }
                    Err(error) => {
                        client.leave();
                        return Err(error);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Reads a line, which has an end also where its client left it out; `false` where there is none any more. What was
/// read stays where this is given up.
pub(crate) async fn read_line(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    let left = LONGEST.saturating_sub(line.len() as u64);
    let mut within = (&mut *from).take(left);
    let read = within.read_until(b'\n', line).await?;
    if !line.is_empty() && !line.ends_with(b"\n") {
        if read as u64 >= left {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        line.push(b'\n');
    }
    Ok(!line.is_empty())
}

/// Takes up what a line says, at once: what comes after it may be about it.
fn take(
    gateway: &Arc<Gateway>,
    client: &Arc<Client>,
    line: &Line,
    text: &[u8],
    working: &mut JoinSet<()>,
) {
    let Ok(text) = std::str::from_utf8(text) else {
        return refuse(line, None, Error::new(Code::NoJson, "this is no UTF-8"), working);
    };
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let (gateway, line) = (Arc::clone(gateway), line.clone());
    if let Some(batch) = serve::batch_of(client, text) {
        let batch = serve::take_up_all(client, &batch);
        let client = Arc::clone(client);
        working.spawn(async move {
            if let Some(answers) = serve::answer_all(&gateway, &client, batch, &line).await {
                line.send(answers).await;
            }
        });
        return;
    }
    let request = match message::parse(text) {
        Ok(Message::Request(request)) => request,
        Ok(other) => return serve::hear(client, &other),
        Err((id, error)) => return refuse(&line, id, error, working),
    };
    let taken = match Whole::of(&request).and_then(|whole| whole.take_up(client)) {
        Ok(taken) => taken,
        Err(error) => return refuse(&line, Some(request.id), error, working),
    };
    if taken.whole.method == "initialize" {
        // What comes after a greeting need not wait for the answer to it.
        let _ = serve::note_greeting(client, &taken.whole.params);
    }
    let (client, id) = (Arc::clone(client), request.id);
    working.spawn(async move {
        // What its client called off is not answered.
        if let Some(answer) = serve::answer(&gateway, &client, taken, &line).await {
            line.send(message::answer(Some(&id), &answer)).await;
        }
    });
}

/// Answers what is not worked on.
fn refuse(line: &Line, id: Option<Id>, error: Error, working: &mut JoinSet<()>) {
    let line = line.clone();
    working.spawn(async move {
        line.send(message::answer(id.as_ref(), &Err(error))).await;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_needs_no_end() {
        let (mut from, mut line) = (&b"one\ntwo"[..], Vec::new());
        for said in [&b"one\n"[..], b"two\n"] {
            assert!(read_line(&mut from, &mut line).await.unwrap());
            assert_eq!(line, said);
            line.clear();
        }
        assert!(!read_line(&mut from, &mut line).await.unwrap());
    }
}
