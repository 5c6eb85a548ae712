//! Events of a server, as they come over HTTP; none is longer than it may be, with all that comes before it.

use std::collections::VecDeque;
use std::io;

use egress::http::SendError;
use reqwest::Response;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: Option<String>,
    pub(super) data: String,
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
    /// How many bytes came for it, whatever they are for.
    pub(super) size: usize,
}

/// The events of a response.
#[derive(Debug)]
pub(super) struct Events {
    response: Response,
    parser: Parser,
}

impl Events {
    /// The events of a response, each of so many bytes at most.
    pub(super) fn of(response: Response, longest: usize) -> Self {
        Self { response, parser: Parser::new(longest) }
    }

    /// The next one; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.parser.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.parser.push(&bytes)?,
                Ok(None) => return Ok(None),
                Err(error) => return Err(io::Error::other(SendError::within(error))),
            }
        }
    }
}

/// Puts events together from pieces of text.
#[derive(Debug)]
struct Parser {
    longest: usize,
    size: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    ready: VecDeque<Event>,
}

impl Parser {
    fn new(longest: usize) -> Self {
        Self {
            longest,
            size: 0,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            ready: VecDeque::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            self.size += 1;
            if self.size > self.longest {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    "an event is longer than it may be",
                ));
            }
            match byte {
                b'\n' => self.end_line(),
                byte => self.line.push(*byte),
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        if line.is_empty() {
            let event = Event { size: self.size, ..std::mem::take(&mut self.event) };
            // What only carries an id or a time still has to be known by who may come again.
            if self.has_data || event.id.is_some() || event.retry.is_some() {
                self.ready.push_back(event);
                self.size = 0;
            }
            self.has_data = false;
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.name = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // Comments, and what nobody knows.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_however_they_are_cut() {
        let text = ": hello\r\nevent: endpoint\ndata: /message?id=1\n\nid: 7\ndata: {\"a\":\ndata: 1}\n\nretry: 10\n\n\n";
        for size in 1..text.len() {
            let mut parser = Parser::new(1000);
            text.as_bytes().chunks(size).for_each(|piece| parser.push(piece).unwrap());
            let events: Vec<_> = parser.ready.into();
            assert_eq!(events.len(), 3, "{size}");
            assert_eq!(events[0].name.as_deref(), Some("endpoint"));
            assert_eq!(events[0].data, "/message?id=1");
            assert_eq!((events[1].id.as_deref(), &*events[1].data), (Some("7"), "{\"a\":\n1}"));
            assert_eq!(events[2].retry, Some(10));
            // The line that follows the last is of an event that does not come.
            assert_eq!(events.iter().map(|event| event.size).sum::<usize>(), text.len() - 1);
        }
    }

    #[test]
    fn one_that_is_too_long_is_refused_before_it_ends() {
        let mut parser = Parser::new(20);
        assert!(parser.push(b"data: short\n\ndata: short\n\n").is_ok());
        assert!(parser.push(b"data: aaaaaaaaaaaaaaaaaaa").is_err());
        // What is no event does not make up for any.
        assert!(Parser::new(20).push(&b": hello\n\n".repeat(10)).is_err());
    }
}
