//! MCP over lines: standard input and output of a client's process, or a socket that stands for them.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::task::JoinSet;

pub use super::client::Caller;
use super::client::{Client, Line};
use super::error::{Code, Error};
use super::message::{self, Message};
use super::serve::{self, Whole};
use crate::gateway::Gateway;

/// The longest line of a client.
const LONGEST: u64 = 16 << 20;

/// How many requests of one client are worked on at a time.
const AT_A_TIME: usize = 256;

/// Speaks with a client until it ends, and answers what it has asked by then.
pub async fn speak(
    gateway: &Arc<Gateway>,
    caller: Caller,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let client = Arc::new(Client::new(caller));
    let (line, mut outgoing) = Line::new();
    client.open_outlet(line.clone());
    gateway.join(&client);
    let mut reader = BufReader::with_capacity(64 << 10, input);
    let mut working = JoinSet::new();
    let mut text = Vec::new();
    let mut is_over = false;
    loop {
        tokio::select! {
            biased;
            Some(message) = outgoing.recv() => {
                output.write_all(message.as_bytes()).await?;
                output.write_all(b"\n").await?;
                if outgoing.is_empty() {
                    output.flush().await?;
                }
            }
            Some(_) = working.join_next(), if !working.is_empty() => {}
            read = read_line(&mut reader, &mut text), if !is_over && working.len() < AT_A_TIME => {
                match read {
                    Ok(true) => {
                        take(gateway, &client, &line, &text, &mut working);
                        text.clear();
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
            else => break,
        }
        if is_over && working.is_empty() && outgoing.is_empty() {
            break;
        }
    }
    output.flush().await
}

/// Reads a line into a buffer, which keeps what came of it when this is given up; `false` at the end.
async fn read_line(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    text: &mut Vec<u8>,
) -> std::io::Result<bool> {
    let left = LONGEST.saturating_sub(text.len() as u64);
    let mut within = (&mut *reader).take(left);
    let read = within.read_until(b'\n', text).await?;
    if text.last() == Some(&b'\n') {
        return Ok(true);
    }
    if read as u64 >= left {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(false)
}

fn take(
    gateway: &Arc<Gateway>,
    client: &Arc<Client>,
    line: &Line,
    text: &[u8],
    working: &mut JoinSet<()>,
) {
    let Ok(text) = std::str::from_utf8(text) else {
        line.tell(message::answer(None, &Err(Error::new(Code::NoJson, "this is no UTF-8"))));
        return;
    };
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    if serve::batch_of(client, text).is_some() {
        let (gateway, client, line) = (Arc::clone(gateway), Arc::clone(client), line.clone());
        let text = text.to_owned();
        working.spawn(async move {
            let Some(batch) = serve::batch_of(&client, &text) else { return };
            if let Some(answers) = serve::answer_batch(&gateway, &client, &batch, &line).await {
                line.send(answers).await;
            }
        });
        return;
    }
    let read = match message::parse(text) {
        Ok(Message::Request(request)) => {
            Whole::of(&request).map_err(|error| (Some(request.id), error))
        }
        Ok(other) => return serve::hear(client, &other),
        Err(wrong) => Err(wrong),
    };
    let whole = match read {
        Ok(whole) => whole,
        Err((id, error)) => {
            line.tell(message::answer(id.as_ref(), &Err(error)));
            return;
        }
    };
    if whole.method == "initialize" {
        // What comes after a greeting need not wait for the answer to it.
        let _ = serve::note_greeting(client, &whole.params);
    }
    let (gateway, client, line) = (Arc::clone(gateway), Arc::clone(client), line.clone());
    working.spawn(async move {
        let id = whole.id.clone();
        let answer = serve::answer(&gateway, &client, whole, &line).await;
        line.send(message::answer(Some(&id), &answer)).await;
    });
}
